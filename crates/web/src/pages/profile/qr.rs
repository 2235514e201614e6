//! A text as a QR code, drawn as SVG.

use std::fmt::{self, Write as _};

use askama::filters::HtmlSafe;
use qrcode::{Color, EcLevel, QrCode};

/// Scanners need a quiet border of four squares.
const BORDER: usize = 4;

/// A QR code. It is always dark on light, because many scanners don't read the inverse.
pub struct Picture {
    side: usize,
    dark: Vec<bool>,
}

impl Picture {
    /// Empty if the text is too long, which no text of ours is.
    pub fn of(text: &str) -> Self {
        let Ok(code) = QrCode::with_error_correction_level(text, EcLevel::M) else {
            return Self { side: 0, dark: Vec::new() };
        };
        let (side, colors) = (code.width(), code.into_colors());
        Self { side, dark: colors.into_iter().map(|color| color == Color::Dark).collect() }
    }
}

impl HtmlSafe for Picture {}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only numbers and fixed texts, so nothing needs escaping. One path of unit squares, a run of them at a time.
        let mut path = String::new();
        for row in 0..self.side {
            let squares = &self.dark[row * self.side..(row + 1) * self.side];
            let mut column = 0;
            while column < self.side {
                let run = squares[column..].iter().take_while(|dark| **dark).count();
                if run > 0 {
                    let _ = write!(path, "M{} {}h{run}v1h-{run}z", column + BORDER, row + BORDER);
                }
                column += run.max(1);
            }
        }
        let all = self.side + 2 * BORDER;
        write!(
            f,
            "<svg class=\"qr\" viewBox=\"0 0 {all} {all}\" role=\"img\" aria-label=\"QR code for your app\">\
             <rect width=\"{all}\" height=\"{all}\" fill=\"#fff\"/><path d=\"{path}\" fill=\"#000\"/></svg>"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dark_square_is_drawn_once() {
        let picture =
            Picture::of("otpauth://totp/Rapport:ana%40acme.test?secret=GEZDGNBVGY3TQOJQ&issuer=Rapport");
        let svg = picture.to_string();
        let runs = svg.split("h-").skip(1).filter_map(|rest| rest.split('z').next()?.parse::<usize>().ok());
        assert_eq!(runs.sum::<usize>(), picture.dark.iter().filter(|dark| **dark).count());
        // The top left of every QR code is a dark square of seven, with the border around it.
        assert!(svg.contains("M4 4h7v1h-7z"), "{svg}");
        let all = picture.side + 2 * BORDER;
        assert!(svg.contains(&format!("viewBox=\"0 0 {all} {all}\"")), "{svg}");
    }
}
