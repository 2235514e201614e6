//! A person who is logged in to the pages: the session's cookie, and requests that carry it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context as _, ensure};

use crate::service::Credentials;

pub struct Browser {
    cookie: String,
}

impl Browser {
    /// Joins as the owner does: opens the invitation, and sends its form.
    pub fn join(address: SocketAddr, credentials: &Credentials) -> anyhow::Result<Self> {
        let path = credentials.invitation.as_ref().context("the owner's link")?;
        let page =
            ask(address, &format!("GET {path} HTTP/1.1\r\nhost: bench.test\r\nconnection: close\r\n\r\n"))?;
        let form = page.split("name=\"form\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        let form = form.context("a form on the invitation")?;
        let body = format!("form={form}&login=new&name=You&password=a+password+for+the+bench");
        let answer = ask(
            address,
            &format!(
                "POST {path} HTTP/1.1\r\nhost: bench.test\r\nconnection: close\r\nsec-fetch-site: same-origin\r\n\
                 content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            ),
        )?;
        ensure!(answer.starts_with("HTTP/1.1 303"), "joining was answered {answer}");
        let cookies = answer.lines().filter_map(|line| line.strip_prefix("set-cookie: "));
        let cookie =
            cookies.filter_map(|cookie| cookie.split(';').next()).find(|pair| pair.contains("rapport="));
        Ok(Self { cookie: cookie.context("a session")?.to_owned() })
    }

    /// The request for a page.
    pub fn get(&self, path: &str) -> Vec<u8> {
        format!("GET {path} HTTP/1.1\r\nhost: bench.test\r\ncookie: {}\r\n\r\n", self.cookie).into_bytes()
    }
}

fn ask(address: SocketAddr, request: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address).context("connecting to the service")?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("reading the service's answer")?;
    Ok(answer)
}
