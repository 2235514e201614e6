//! A table of forbidden spellings, written from the address registries, and the properties of the guard.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use proptest::prelude::*;

use super::{AddressPolicy, Destination, Host, MAX_URL_BYTES, Refusal};

/// Authorities that stand for a forbidden address, by the range that the refusal must name.
const FORBIDDEN_ADDRESSES: &[(&str, &[&str])] = &[
    (
        "loopback",
        &[
            // The plain addresses, and the ends and the middle of the range.
            "127.0.0.1",
            "127.0.0.0",
            "127.0.0.2",
            "127.0.1.1",
            "127.127.127.127",
            "127.255.255.254",
            "127.255.255.255",
            "127.0.0.1:443",
            "127.0.0.1:8443",
            "127.0.0.1:1",
            "127.0.0.1:65535",
            "127.0.0.1:",
            "127.0.0.1.",
            "127.0.0.1.:8443",
            // Short forms.
            "127.1",
            "127.1.",
            "127.0.1",
            "127.65535",
            "127.16777215",
            "127.255.65535",
            // Decimal, hexadecimal and octal, whole and in parts.
            "2130706433",
            "2130706432",
            "2147483647",
            "2130706433.",
            "0000000000000000000000000017700000001",
            "0x7f000001",
            "0X7F000001",
            "0x7F.0x0.0x0.0x1",
            "0x7f.0.0.1",
            "0x7f.1",
            "0x7f.0x000001",
            "0x000000007f.1",
            "017700000001",
            "0177.0.0.1",
            "0177.0.0.01",
            "00000177.0.0.1",
            "0177.1",
            "0177.0.0x1",
            "127.0.0.0x1",
            "127.0x1",
            "127.0.0.0x",
            "127.0.0.01",
            "127.00.00.01",
            "127.0.0.001",
            // Percent-encoded.
            "%31%32%37.0.0.1",
            "127%2e0%2e0%2e1",
            "127%2E0%2E0%2E1",
            "%31%32%37%2e%30%2e%30%2e%31",
            "0%787f.1",
            "%30x7f000001",
            // Full-width, circled, superscript, mathematical digits and foreign dots.
            "１２７．０．０．１",
            "１２７。０。０。１",
            "１２７.0.0.1",
            "127．0．0．1",
            "127。0。0。1",
            "127｡0｡0｡1",
            "①②⑦.⓪.⓪.①",
            "①②⑦。⓪。⓪。①",
            "⑫7.0.0.1",
            "¹²⁷.⁰.⁰.¹",
            "₁₂₇.₀.₀.₁",
            "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
            "𝟭𝟮𝟳.𝟬.𝟬.𝟭",
            "𝟷𝟸𝟽.𝟶.𝟶.𝟷",
            "𝟙𝟚𝟟.𝟘.𝟘.𝟙",
            "０ｘ７ｆ.1",
            "0𝐱7𝐟.1",
            "２１３０７０６４３３",
            "０１７７．１",
            "%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1",
            "127%E3%80%820.0.1",
            "127.0.0\u{00AD}.1",
            "127.0.0.1\u{200B}",
            "\u{FEFF}127.0.0.1",
            "12\u{2060}7.0.0.1",
            // Names that stand for loopback.
            "localhost",
            "localhost.",
            "localhost:8443",
            "localhost.:8443",
            "LOCALHOST",
            "LocalHost",
            "api.localhost",
            "API.LOCALHOST.",
            "a.b.c.localhost",
            "127-0-0-1.localhost",
            "localhost.localhost",
            "ｌｏｃａｌｈｏｓｔ",
            "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
            "𝓵𝓸𝓬𝓪𝓵𝓱𝓸𝓼𝓽",
            "loc\u{00AD}alhost",
            "lo\u{200B}calhost",
            "%6c%6f%63%61%6c%68%6f%73%74",
            "%4C%4FCALHOST",
            "local%68ost%2e",
            "localhost。",
            "api。localhost",
            "localhoſt",
            // IPv6.
            "[::1]",
            "[::1]:8443",
            "[0::1]",
            "[::0:1]",
            "[::0001]",
            "[0:0:0:0:0:0:0:1]",
            "[0000:0000:0000:0000:0000:0000:0000:0001]",
            "[0:0::0:1]",
            "[::0.0.0.1]",
            "[0:0:0:0:0:0:0.0.0.1]",
        ],
    ),
    (
        "private",
        &[
            "10.0.0.0",
            "10.0.0.1",
            "10.128.0.1",
            "10.255.255.255",
            "10.1",
            "10.0.0.1.",
            "167772160",
            "167772161",
            "184549375",
            "0x0a000001",
            "0xa.1",
            "0x0A.0.0.1",
            "012.0.0.1",
            "012.1",
            "01200000001",
            "10。0。0。1",
            "⑩.0.0.1",
            "１０．０．０．１",
            "%31%30.0.0.1",
            "172.16.0.0",
            "172.16.0.1",
            "172.24.1.2",
            "172.31.255.254",
            "172.31.255.255",
            "172.1048577",
            "172.16.1",
            "2886729728",
            "2886729729",
            "2887778303",
            "0xac100001",
            "0xac.0x10.0.1",
            "0254.020.0.1",
            "172.⑯.0.1",
            "192.168.0.0",
            "192.168.0.1",
            "192.168.1.1",
            "192.168.100.1:8443",
            "192.168.255.255",
            "192.168.1",
            "192.168.257",
            "192.11010049",
            "3232235520",
            "3232235521",
            "3232301055",
            "0xc0a80001",
            "0xC0.0xA8.0x0.0x1",
            "0300.0250.0.1",
            "030052000001",
            "１９２．１６８．０．１",
            "192%2e168%2e0%2e1",
        ],
    ),
    (
        "cloud metadata",
        &[
            "169.254.169.254",
            "169.254.169.254.",
            "169.254.169.254:8443",
            "2852039166",
            "0xa9fea9fe",
            "0xA9.0xFE.0xA9.0xFE",
            "0251.0376.0251.0376",
            "025177524776",
            "169.254.43518",
            "169.16689662",
            "169.254.0xa9.0376",
            "169。254。169。254",
            "①⑥⑨.②⑤④.①⑥⑨.②⑤④",
            "１６９．２５４．１６９．２５４",
            "169%2E254%2E169%2E254",
            "169.254.170.2",
            "169.254.170.23",
            "100.100.100.200",
            "1684301000",
            "0x646464c8",
            "192.0.0.192",
            "168.63.129.16",
            "2822734096",
            "[fd00:ec2::254]",
            "[FD00:EC2::254]",
            "[fd00:0ec2:0:0:0:0:0:254]",
            "[fd00:ec2::0.0.2.84]",
            "[fd00:ec2::23]",
            "[fd20:ce::254]",
            "[fd00:c1::a9fe:a9fe]",
            "[fd00:c1::169.254.169.254]",
        ],
    ),
    (
        "link-local",
        &[
            "169.254.0.0",
            "169.254.0.1",
            "169.254.128.1",
            "169.254.169.253",
            "169.254.169.255",
            "169.254.255.255",
            "169.254.1",
            "2851995648",
            "0xa9fe0001",
            "0251.0376.0.1",
            "[fe80::]",
            "[fe80::1]",
            "[FE80::1]",
            "[fe80:0:0:0:0:0:0:1]",
            "[fe80::a00:27ff:fe4e:66a1]",
            "[fe80::169.254.169.254]",
            "[fe80::5efe:7f00:1]",
            "[fe90::1]",
            "[feaf::1]",
            "[febf::1]",
            "[febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
        ],
    ),
    (
        "carrier-grade NAT",
        &[
            "100.64.0.0",
            "100.64.0.1",
            "100.96.1.2",
            "100.100.100.199",
            "100.100.100.201",
            "100.127.255.255",
            "100.64.1",
            "1681915904",
            "1686110207",
            "0x64400001",
            "0144.0100.0.1",
            "100.64.0.1.",
        ],
    ),
    (
        "this network",
        &[
            "0.0.0.0",
            "0.0.0.0:8443",
            "0.0.0.0.",
            "0",
            "0.",
            "00",
            "0x",
            "0x0",
            "0x00000000",
            "0.0",
            "0.0.0",
            "0.1",
            "1",
            "0.0.0.1",
            "0.127.0.1",
            "0.255.255.255",
            "16777215",
            "000.000.000.000",
            "%30",
            "０",
            "⓪",
            "0。0。0。0",
        ],
    ),
    (
        "protocol assignments",
        &[
            "192.0.0.0",
            "192.0.0.1",
            "192.0.0.8",
            "192.0.0.9",
            "192.0.0.10",
            "192.0.0.170",
            "192.0.0.171",
            "192.0.0.255",
            "192.1",
            "3221225472",
            "0xc0000001",
            "0300.0.0.1",
            "[2001:1::1]",
            "[2001:1::2]",
            "[2001:3::1]",
            "[2001:4:112::1]",
            "[2001:5::1]",
            "[2001:30::1]",
            "[2001:100::1]",
            "[2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff]",
        ],
    ),
    (
        "documentation",
        &[
            "192.0.2.0",
            "192.0.2.1",
            "192.0.2.128",
            "192.0.2.255",
            "192.0.513",
            "3221225985",
            "198.51.100.0",
            "198.51.100.1",
            "198.51.100.255",
            "0xc6336401",
            "203.0.113.0",
            "203.0.113.1",
            "203.0.113.255",
            "203.0.28929",
            "3405803777",
            "[2001:db8::]",
            "[2001:db8::1]",
            "[2001:DB8::1]",
            "[2001:0db8:0:0:0:0:0:1]",
            "[2001:db8:8000::1]",
            "[2001:db8::192.0.2.1]",
            "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]",
            "[3fff::]",
            "[3fff::1]",
            "[3fff:7ff::1]",
            "[3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff]",
        ],
    ),
    (
        "6to4 relay",
        &[
            "192.88.99.0",
            "192.88.99.1",
            "192.88.99.2",
            "192.88.99.255",
            "3227017985",
            "0xc0586301",
            "192.88.25345",
        ],
    ),
    (
        "benchmarking",
        &[
            "198.18.0.0",
            "198.18.0.1",
            "198.18.255.255",
            "198.19.0.0",
            "198.19.255.255",
            "198.18.1",
            "3323068417",
            "0xc6120001",
            "0306.022.0.1",
            "[2001:2::]",
            "[2001:2::1]",
            "[2001:2:0:ffff:ffff:ffff:ffff:ffff]",
        ],
    ),
    (
        "multicast",
        &[
            "224.0.0.0",
            "224.0.0.1",
            "224.0.0.251",
            "232.1.2.3",
            "239.255.255.250",
            "239.255.255.255",
            "3758096385",
            "0xe0000001",
            "0340.0.0.1",
            "[ff00::]",
            "[ff01::1]",
            "[ff02::1]",
            "[FF02::2]",
            "[ff02::fb]",
            "[ff05::1:3]",
            "[ff0e::1]",
            "[ffff::1]",
            "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
        ],
    ),
    (
        "reserved",
        &[
            "240.0.0.0",
            "240.0.0.1",
            "247.1.2.3",
            "255.0.0.1",
            "255.255.255.254",
            "4026531840",
            "4294967294",
            "0xf0000001",
            "0360.0.0.1",
        ],
    ),
    (
        "broadcast",
        &["255.255.255.255", "4294967295", "0xffffffff", "0xFFFFFFFF", "037777777777", "255.16777215"],
    ),
    ("unspecified", &["[::]", "[::]:8443", "[::0]", "[0::]", "[0:0:0:0:0:0:0:0]", "[0::0:0]", "[::0.0.0.0]"]),
    (
        "IPv4-compatible",
        &[
            "[::127.0.0.1]",
            "[::7f00:1]",
            "[::10.0.0.1]",
            "[::a9fe:a9fe]",
            "[::169.254.169.254]",
            "[::8.8.8.8]",
            "[0:0:0:0:0:0:192.168.0.1]",
            "[::2]",
            "[::ffff:ffff]",
        ],
    ),
    (
        "IPv4-mapped",
        &[
            "[::ffff:127.0.0.1]",
            "[::FFFF:127.0.0.1]",
            "[::ffff:127.0.0.1]:8443",
            "[::ffff:7f00:1]",
            "[::ffff:7f00:0001]",
            "[::FFFF:7F00:1]",
            "[0:0:0:0:0:ffff:7f00:1]",
            "[0:0:0:0:0:ffff:127.0.0.1]",
            "[0000:0000:0000:0000:0000:ffff:7f00:0001]",
            "[::0:ffff:127.0.0.1]",
            "[::ffff:0.0.0.0]",
            "[::ffff:0:0]",
            "[::ffff:10.0.0.1]",
            "[::ffff:a00:1]",
            "[::ffff:172.16.0.1]",
            "[::ffff:192.168.0.1]",
            "[::ffff:c0a8:1]",
            "[::ffff:169.254.169.254]",
            "[::ffff:a9fe:a9fe]",
            "[::ffff:100.64.0.1]",
            "[::ffff:224.0.0.1]",
            "[::ffff:255.255.255.255]",
            "[::ffff:ffff:ffff]",
            "[::ffff:8.8.8.8]",
            "[::ffff:808:808]",
        ],
    ),
    (
        "IPv4-translated",
        &["[::ffff:0:127.0.0.1]", "[::ffff:0:7f00:1]", "[::ffff:0:a9fe:a9fe]", "[::ffff:0:8.8.8.8]"],
    ),
    (
        "NAT64",
        &[
            "[64:ff9b::]",
            "[64:ff9b::127.0.0.1]",
            "[64:FF9B::7F00:1]",
            "[0064:ff9b:0:0:0:0:10.0.0.1]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b::169.254.169.254]",
            "[64:ff9b::192.168.1.1]",
            "[64:ff9b::8.8.8.8]",
            "[64:ff9b::ffff:ffff]",
        ],
    ),
    (
        "local NAT64",
        &[
            "[64:ff9b:1::]",
            "[64:ff9b:1::127.0.0.1]",
            "[64:ff9b:1::a9fe:a9fe]",
            "[64:ff9b:1:fffe::1]",
            "[64:ff9b:1:ffff:ffff:ffff:ffff:ffff]",
        ],
    ),
    ("discard-only", &["[100::]", "[100::1]", "[0100::dead:beef]", "[100::ffff:ffff:ffff:ffff]"]),
    ("dummy prefix", &["[100:0:0:1::]", "[100:0:0:1::1]", "[100:0:0:1:ffff:ffff:ffff:ffff]"]),
    (
        "Teredo",
        &[
            "[2001::]",
            "[2001::1]",
            "[2001:0::1]",
            "[2001:0:7f00:1::]",
            "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
            "[2001:0:4136:e378:8000:63bf:80ff:fffe]",
            "[2001:0:ffff:ffff:ffff:ffff:ffff:ffff]",
        ],
    ),
    (
        "ORCHID",
        &[
            "[2001:10::]",
            "[2001:10::1]",
            "[2001:1f:ffff::1]",
            "[2001:20::]",
            "[2001:20::1]",
            "[2001:2f:ffff::1]",
        ],
    ),
    (
        "6to4",
        &[
            "[2002::]",
            "[2002:7f00:1::]",
            "[2002:7f00:1::1]",
            "[2002:7F00:0001::1]",
            "[2002:a00:1::1]",
            "[2002:a9fe:a9fe::1]",
            "[2002:c0a8:1::1]",
            "[2002:ac10:1::]",
            "[2002:808:808::1]",
            "[2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
        ],
    ),
    (
        "segment routing",
        &["[5f00::]", "[5f00::1]", "[5F00:1::1]", "[5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff]"],
    ),
    (
        "unique local",
        &[
            "[fc00::]",
            "[fc00::1]",
            "[FC00::1]",
            "[fcff::1]",
            "[fd00::1]",
            "[fd00:ec2::253]",
            "[fd00:ec2::255]",
            "[fd12:3456:789a:1::1]",
            "[fd00::10.0.0.1]",
            "[fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
        ],
    ),
    (
        "site-local",
        &["[fec0::]", "[fec0::1]", "[FEC0::1]", "[fed0::1]", "[feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]"],
    ),
    (
        "ISATAP",
        &[
            "[2a00:1450::5efe:127.0.0.1]",
            "[2a00:1450::5efe:7f00:1]",
            "[2a00:1450::5EFE:a9fe:a9fe]",
            "[2a00:1450:0:0:0:5efe:192.168.0.1]",
            "[2600::200:5efe:10.0.0.1]",
            "[2600::200:5efe:808:808]",
        ],
    ),
    (
        "outside global unicast",
        &[
            "[0:0:0:0:0:1::]",
            "[::fffe:7f00:1]",
            "[::1:7f00:1]",
            "[1::1]",
            "[64:ff9a::1]",
            "[64:ff9b:0:1::1]",
            "[64:ff9b:2::1]",
            "[100:0:0:2::1]",
            "[200::1]",
            "[1000::1]",
            "[1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
            "[4000::]",
            "[4000::1]",
            "[5eff::1]",
            "[5f01::1]",
            "[8000::1]",
            "[c000::1]",
            "[fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
            "[fe00::1]",
            "[fe7f:ffff::1]",
        ],
    ),
];

/// Texts that aren't destinations, by the code of the refusal.
const REFUSED_TEXTS: &[(&str, &[&str])] = &[
    (
        "not_https",
        &[
            "",
            "https",
            "https:",
            "https:/",
            "http://example.com/",
            "HTTP://example.com/",
            "http://127.0.0.1/",
            "http://[::1]/",
            "httpss://example.com/",
            "shttp://example.com/",
            "ftp://example.com/",
            "ws://example.com/",
            "wss://example.com/",
            "file:///etc/passwd",
            "file://localhost/etc/passwd",
            "gopher://127.0.0.1:70/_",
            "dict://127.0.0.1:11211/",
            "ldap://127.0.0.1/",
            "unix:/run/service.sock",
            "data:text/plain,hello",
            "javascript:alert(1)",
            "blob:https://example.com/1",
            "view-source:https://example.com/",
            "jar:https://example.com!/",
            "about:blank",
            "mailto:a@example.com",
            "//example.com/",
            "/hook",
            "?x=1",
            "example.com",
            "example.com:443/hook",
            "127.0.0.1",
            "[::1]",
            "https:example.com",
            "https:/example.com",
            "https:127.0.0.1",
            "https//example.com",
            "https;//example.com",
            "ｈｔｔｐｓ://example.com",
            "https：／／example.com",
            "%68ttps://example.com",
            "\u{200B}https://example.com",
            "\u{FEFF}https://example.com",
            "'https://example.com'",
            "<https://example.com>",
        ],
    ),
    (
        "missing_host",
        &[
            "https://",
            "HTTPS://",
            "https:///",
            "https:////",
            "https:///example.com",
            "https:////127.0.0.1/",
            "https://?x",
            "https:///?x",
            "https://:443",
            "https://:443/",
            "https://:",
        ],
    ),
    (
        "userinfo",
        &[
            "https://user@example.com/",
            "https://user:password@example.com/",
            "https://:password@example.com/",
            "https://@example.com/",
            "https://:@example.com/",
            "https://@/",
            "https://user@",
            "https://example.com@127.0.0.1/",
            "https://example.com:443@127.0.0.1/",
            "https://127.0.0.1@example.com/",
            "https://user%40host@example.com/",
            "https://a@b@example.com/",
            "https://a@b@127.0.0.1",
            "https://user@[::1]/",
            "https://example.com%2f@127.0.0.1/",
            "https://user@example.com?x",
            "https://xn--@localhost/",
        ],
    ),
    (
        "fragment",
        &[
            "https://example.com/#",
            "https://example.com/#top",
            "https://example.com#top",
            "https://example.com#@127.0.0.1/",
            "https://127.0.0.1#@example.com/",
            "https://example.com/?x#y",
            "https://#",
        ],
    ),
    (
        "bad_character",
        &[
            " https://example.com/",
            "https://example.com/ ",
            "\thttps://example.com/",
            "https://example.com/\n",
            "https://example.com/\r\nHost: 127.0.0.1",
            "https://exam\tple.com/",
            "https://exam\nple.com/",
            "https://127.0\t.0.1/",
            "https://127.0.0.1\n/",
            "https://local\rhost/",
            "ht\ttps://example.com/",
            "https:\t//example.com/",
            "https:/\n/example.com/",
            "https://example.com/a b",
            "https://example.com/?a b",
            "https://example .com/",
            "https://example.com\0/",
            "\0https://example.com/",
            "https://example.com/\0",
            "https://example.com/\u{1}",
            "https://example.com/\u{1b}[0m",
            "https://example.com/\u{7f}",
            "https://example.com/\u{80}",
            "https://example.com/\u{85}",
            "https://example.com/\u{a0}",
            "https://example.com/\u{2028}",
            "https://example.com/\u{3000}",
            "https://example.com\u{2003}/",
            "https:\\\\example.com\\",
            "https:\\/example.com/",
            "https:/\\example.com/",
            "https://\\example.com/",
            "https://example.com\\@127.0.0.1/",
            "https://127.0.0.1\\@example.com/",
            "https://example.com\\.127.0.0.1/",
            "https://example.com/a\\b",
            "https://example.com/?a\\b",
            "\\\\example.com\\share",
        ],
    ),
    (
        "bad_port",
        &[
            "https://example.com:0/",
            "https://example.com:00000/",
            "https://127.0.0.1:0/",
            "https://[::1]:0/",
            "https://example.com:65536/",
            "https://example.com:99999/",
            "https://example.com:4294967739/",
            "https://example.com:18446744073709552059/",
            "https://example.com:-1/",
            "https://example.com:+443/",
            "https://example.com:443x/",
            "https://example.com:0x1bb/",
            "https://example.com:https/",
            "https://example.com:443:443/",
            "https://example.com:４４３/",
            "https://example.com:%34%34%33/",
            "https://[::1]:65536/",
            "https://127.0.0.1:80.1/",
        ],
    ),
    (
        "bad_host",
        &[
            // Numbers that aren't addresses.
            "https://256.256.256.256/",
            "https://127.0.0.256/",
            "https://127.0.0.1.1/",
            "https://127.0.0.0.1/",
            "https://1.2.3.4.5/",
            "https://4294967296/",
            "https://0x100000000/",
            "https://040000000000/",
            "https://127.16777216/",
            "https://127.0.0.08/",
            "https://127..0.1/",
            "https://example.1/",
            "https://example.0x7f/",
            "https://example.com.127/",
            // Brackets, zone ids and malformed IPv6.
            "https://[fe80::1%25eth0]/",
            "https://[fe80::1%eth0]/",
            "https://[::1%25lo]/",
            "https://[::1%lo]/",
            "https://[::1%251]/",
            "https://[::1/",
            "https://[]/",
            "https://[:]/",
            "https://[:::]/",
            "https://[::1::]/",
            "https://[1:2:3:4:5:6:7]/",
            "https://[1:2:3:4:5:6:7:8:9]/",
            "https://[::12345]/",
            "https://[::g]/",
            "https://[::ffff:127.0.0]/",
            "https://[::ffff:127.0.0.256]/",
            "https://[::ffff:127.0.0.01]/",
            "https://[::ffff:0x7f.0.0.1]/",
            "https://[127.0.0.1]/",
            "https://[localhost]/",
            "https://[v1.fe80::1]/",
            "https://[::1]x/",
            // Characters that aren't allowed in a host, plain or encoded.
            "https://exa%mple.com/",
            "https://example%2ecom%00/",
            "https://127.0.0.1%00/",
            "https://127.0.0.1%09/",
            "https://127.0.0.1%20/",
            "https://127.0.0.1%2f/",
            "https://127.0.0.1%23.example.com/",
            "https://example.com%40127.0.0.1/",
            "https://example.com%5c127.0.0.1/",
            "https://%5b::1%5d/",
            "https://example.com%3a443/",
            "https://exa<mple.com/",
            "https://exa>mple.com/",
            "https://exa^mple.com/",
            "https://exa|mple.com/",
            "https://exa]mple.com/",
            "https://%ff/",
            "https://%c0%ae/",
            "https://\u{FFFD}/",
            // Allowed by the URL standard, but not by DNS.
            "https://exa*mple.com/",
            "https://*.example.com/",
            "https://exa!mple.com/",
            "https://exa$mple.com/",
            "https://exa'mple.com/",
            "https://exa(mple).com/",
            "https://exa,mple.com/",
            "https://exa;mple.com/",
            "https://exa=mple.com/",
            "https://exa~mple.com/",
            "https://exa{mple}.com/",
            "https://exa\"mple.com/",
            "https://exa`mple.com/",
            "https://./",
            "https://../",
            "https://.example.com/",
            "https://example..com/",
            "https://example.com../",
            "https://localhost../",
            "https://.localhost/",
            "https://-example.com/",
            "https://example-.com/",
            // Broken punycode and violations of IDNA's contextual rules.
            "https://xn--/",
            "https://xn--a/",
            "https://xn--0.com/",
            "https://xn--localhost-/",
            "https://a\u{202E}b.com/",
            "https://example.com\u{2044}127.0.0.1/",
        ],
    ),
];

/// Public destinations, many of them the first address outside a forbidden range.
const ACCEPTED: &[(&str, &str)] = &[
    ("https://example.com", "https://example.com/"),
    ("https://example.com/", "https://example.com/"),
    ("HTTPS://EXAMPLE.COM/Hook", "https://example.com/Hook"),
    ("hTTps://example.com:443/hook", "https://example.com/hook"),
    ("https://example.com:/hook", "https://example.com/hook"),
    ("https://example.com:8443/hook", "https://example.com:8443/hook"),
    ("https://example.com:1", "https://example.com:1/"),
    ("https://example.com:65535", "https://example.com:65535/"),
    ("https://example.com:00080/", "https://example.com:80/"),
    ("https://example.com./hook", "https://example.com/hook"),
    ("https://example.com.:8443/hook", "https://example.com:8443/hook"),
    ("https://example.com?x=1", "https://example.com/?x=1"),
    ("https://example.com/?a=b&c=%20", "https://example.com/?a=b&c=%20"),
    ("https://example.com/a@b?c@d", "https://example.com/a@b?c@d"),
    ("https://example.com/?to=http://127.0.0.1/", "https://example.com/?to=http://127.0.0.1/"),
    ("https://example.com/a/../b/./c", "https://example.com/b/c"),
    ("https://example.com//127.0.0.1/", "https://example.com//127.0.0.1/"),
    ("https://example.com/päth", "https://example.com/p%C3%A4th"),
    ("https://bücher.example/", "https://xn--bcher-kva.example/"),
    ("https://BÜCHER.example/", "https://xn--bcher-kva.example/"),
    ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
    ("https://例え。テスト/", "https://xn--r8jz45g.xn--zckzah/"),
    ("https://my_host.example.com/", "https://my_host.example.com/"),
    ("https://intranet/hook", "https://intranet/hook"),
    ("https://printer.local/", "https://printer.local/"),
    ("https://localhost.example.com/", "https://localhost.example.com/"),
    ("https://notlocalhost/", "https://notlocalhost/"),
    ("https://127.0.0.1.example.com/", "https://127.0.0.1.example.com/"),
    ("https://127-0-0-1.example.com/", "https://127-0-0-1.example.com/"),
    ("https://1.0.0.0/", "https://1.0.0.0/"),
    ("https://8.8.8.8./", "https://8.8.8.8/"),
    ("https://134744072/", "https://8.8.8.8/"),
    ("https://0x08.0x08.0x08.0x08/", "https://8.8.8.8/"),
    ("https://9.255.255.255/", "https://9.255.255.255/"),
    ("https://11.0.0.0/", "https://11.0.0.0/"),
    ("https://100.63.255.255/", "https://100.63.255.255/"),
    ("https://100.128.0.0/", "https://100.128.0.0/"),
    ("https://126.255.255.255/", "https://126.255.255.255/"),
    ("https://128.0.0.0/", "https://128.0.0.0/"),
    ("https://168.63.129.15/", "https://168.63.129.15/"),
    ("https://168.63.129.17/", "https://168.63.129.17/"),
    ("https://169.253.255.255/", "https://169.253.255.255/"),
    ("https://169.255.0.0/", "https://169.255.0.0/"),
    ("https://172.15.255.255/", "https://172.15.255.255/"),
    ("https://172.32.0.0/", "https://172.32.0.0/"),
    ("https://191.255.255.255/", "https://191.255.255.255/"),
    ("https://192.0.1.0/", "https://192.0.1.0/"),
    ("https://192.0.1.255/", "https://192.0.1.255/"),
    ("https://192.0.3.0/", "https://192.0.3.0/"),
    ("https://192.88.98.255/", "https://192.88.98.255/"),
    ("https://192.88.100.0/", "https://192.88.100.0/"),
    ("https://192.167.255.255/", "https://192.167.255.255/"),
    ("https://192.169.0.0/", "https://192.169.0.0/"),
    ("https://198.17.255.255/", "https://198.17.255.255/"),
    ("https://198.20.0.0/", "https://198.20.0.0/"),
    ("https://198.51.99.255/", "https://198.51.99.255/"),
    ("https://198.51.101.0/", "https://198.51.101.0/"),
    ("https://203.0.112.255/", "https://203.0.112.255/"),
    ("https://203.0.114.0/", "https://203.0.114.0/"),
    ("https://223.255.255.255/", "https://223.255.255.255/"),
    ("https://[2000::]/", "https://[2000::]/"),
    (
        "https://[2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff]/",
        "https://[2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff]/",
    ),
    ("https://[2001:200::]/", "https://[2001:200::]/"),
    ("https://[2001:DB7:ffff::1]/", "https://[2001:db7:ffff::1]/"),
    ("https://[2001:db9::]/", "https://[2001:db9::]/"),
    ("https://[2001:4860:4860::8888]/", "https://[2001:4860:4860::8888]/"),
    ("https://[2001:ffff::1]/", "https://[2001:ffff::1]/"),
    ("https://[2003::]/", "https://[2003::]/"),
    ("https://[2606:4700:4700:0:0:0:0:1111]:8443/", "https://[2606:4700:4700::1111]:8443/"),
    ("https://[2a00:1450::100:5efe:7f00:1]/", "https://[2a00:1450::100:5efe:7f00:1]/"),
    ("https://[2a00:1450::5eff:7f00:1]/", "https://[2a00:1450::5eff:7f00:1]/"),
    ("https://[3ffe:ffff::1]/", "https://[3ffe:ffff::1]/"),
    ("https://[3fff:1000::]/", "https://[3fff:1000::]/"),
    (
        "https://[3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]/",
        "https://[3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]/",
    ),
];

/// The ranges as CIDRs, separate from the module's own table so that a row missing there fails here.
const FORBIDDEN_NETS: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "168.63.129.16/32",
    "::/3",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "4000::/2",
    "8000::/1",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "::ffff:0:0/96",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];

#[test]
fn every_spelling_of_a_forbidden_address_is_refused_by_its_range() {
    let mut wrong = Vec::new();
    for (range, authorities) in FORBIDDEN_ADDRESSES {
        for authority in *authorities {
            let text = format!("https://{authority}/hook");
            match verdict(&text, &AddressPolicy::default()) {
                Err(Refusal::ForbiddenAddress { range: named, .. }) if named == *range => {}
                other => wrong.push(format!("{text}: expected {range}, got {other:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_invalid_destination_is_refused_with_its_code() {
    let mut wrong = Vec::new();
    for (code, texts) in REFUSED_TEXTS {
        for text in *texts {
            match Destination::parse(text) {
                Err(refusal) if refusal.code() == *code => {}
                other => wrong.push(format!("{text:?}: expected {code}, got {other:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_table_holds_at_least_300_different_forbidden_destinations() {
    let addresses = FORBIDDEN_ADDRESSES
        .iter()
        .flat_map(|(_, list)| *list)
        .map(|authority| format!("https://{authority}/hook"));
    let texts = REFUSED_TEXTS.iter().flat_map(|(_, list)| *list).map(|text| (*text).to_owned());
    let all: Vec<String> = addresses.chain(texts).collect();
    let different: HashSet<&String> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "a spelling is listed twice");
    assert!(different.len() >= 300, "only {} spellings", different.len());
    assert!(ACCEPTED.len() >= 40, "only {} accepted destinations", ACCEPTED.len());
}

#[test]
fn public_destinations_are_accepted_and_normalised() {
    for (text, normalised) in ACCEPTED {
        verdict(text, &AddressPolicy::default()).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
        let destination = Destination::parse(text).expect("parsed above");
        assert_eq!(destination.as_str(), *normalised, "{text}");
    }
}

#[test]
fn the_parts_of_a_destination() {
    let plain = Destination::parse("HTTPS://Hooks.Example.COM.").unwrap();
    assert_eq!(plain.host(), Host::Name("hooks.example.com"));
    assert_eq!(plain.port(), 443);
    assert_eq!(plain.authority(), "hooks.example.com");
    assert_eq!(plain.path_and_query(), "/");

    let full = Destination::parse("https://bücher.example:8443/a%20b/ü?x=1&y=ä").unwrap();
    assert_eq!(full.host(), Host::Name("xn--bcher-kva.example"));
    assert_eq!(full.port(), 8443);
    assert_eq!(full.authority(), "xn--bcher-kva.example:8443");
    assert_eq!(full.path_and_query(), "/a%20b/%C3%BC?x=1&y=%C3%A4");

    let v4 = Destination::parse("https://0x08080808:443/").unwrap();
    assert_eq!(v4.host(), Host::Ip(Ipv4Addr::new(8, 8, 8, 8).into()));
    assert_eq!(v4.authority(), "8.8.8.8");

    let v6 = Destination::parse("https://[2606:4700:4700:0::1111]:9/?q").unwrap();
    assert_eq!(v6.host(), Host::Ip(address("2606:4700:4700::1111")));
    assert_eq!(v6.authority(), "[2606:4700:4700::1111]:9");
    assert_eq!(v6.path_and_query(), "/?q");
}

#[test]
fn length_is_bounded_as_given_and_as_normalised() {
    let stem = "https://example.com/";
    let longest = format!("{stem}{}", "a".repeat(MAX_URL_BYTES - stem.len()));
    assert_eq!(Destination::parse(&longest).unwrap().as_str(), longest);
    assert_eq!(Destination::parse(&format!("{longest}a")), Err(Refusal::TooLong));

    // "ä" is two bytes as given and six percent-encoded.
    let swelling = format!("{stem}{}", "ä".repeat(MAX_URL_BYTES / 4));
    assert!(swelling.len() < MAX_URL_BYTES);
    assert_eq!(Destination::parse(&swelling), Err(Refusal::TooLong));
}

#[test]
fn names_are_bounded_as_dns_bounds_them() {
    let label = "a".repeat(63);
    let parses =
        |host: &str| Destination::parse(&format!("https://{host}/")).map_err(|refusal| refusal.code());
    assert!(parses(&label).is_ok());
    assert_eq!(parses(&format!("{label}a")).unwrap_err(), "bad_host");

    let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
    assert_eq!(longest.len(), 253);
    assert!(parses(&longest).is_ok());
    assert!(parses(&format!("{longest}.")).is_ok(), "the trailing dot does not count");
    assert_eq!(parses(&format!("{longest}a")).unwrap_err(), "bad_host");
}

#[test]
fn an_allowed_network_opens_exactly_its_addresses() {
    let policy = allowing(&["10.1.0.0/16", "fd00:1::/64"]);
    for open in ["10.1.0.0", "10.1.255.255", "fd00:1::1", "::ffff:10.1.2.3", "8.8.8.8"] {
        assert_eq!(policy.judge(address(open)), Ok(()), "{open}");
    }
    for shut in [
        "10.0.255.255",
        "10.2.0.0",
        "fd00:1:0:1::",
        "::ffff:10.2.0.0",
        "127.0.0.1",
        "64:ff9b::10.1.2.3",
        "::10.1.2.3",
    ] {
        assert!(policy.judge(address(shut)).is_err(), "{shut}");
    }
}

#[test]
fn a_network_with_host_bits_set_means_its_network() {
    let policy = allowing(&["192.168.7.9/24"]);
    assert_eq!(policy.judge(address("192.168.7.1")), Ok(()));
    assert!(policy.judge(address("192.168.8.9")).is_err());
}

#[test]
fn metadata_is_open_only_where_a_network_names_it() {
    let metadata = address("169.254.169.254");
    assert!(allowing(&["10.0.0.0/8", "127.0.0.0/8"]).judge(metadata).is_err());
    assert_eq!(allowing(&["169.254.169.254/32"]).judge(metadata), Ok(()));
}

#[test]
fn localhost_names_count_as_both_loopback_addresses() {
    for text in ["https://localhost/", "https://api.LOCALHOST.:8443/"] {
        let both = allowing(&["127.0.0.0/8", "::1/128"]);
        assert_eq!(verdict(text, &both), Ok(()), "{text}");
        assert!(verdict(text, &allowing(&["127.0.0.0/8"])).is_err(), "{text}");
        assert!(verdict(text, &allowing(&["::1/128"])).is_err(), "{text}");
    }
}

#[test]
fn one_refused_address_refuses_the_destination() {
    let destination = Destination::parse("https://hooks.example.com/").unwrap();
    let policy = AddressPolicy::default();
    let public = [address("8.8.8.8"), address("2606:4700:4700::1111")];
    assert_eq!(destination.judge_all(&public, &policy), Ok(()));

    let mixed = [public[0], address("10.0.0.1"), public[1]];
    assert_eq!(
        destination.judge_all(&mixed, &policy),
        Err(Refusal::ForbiddenAddress { address: address("10.0.0.1"), range: "private" })
    );
    assert_eq!(destination.judge_all(&mixed, &allowing(&["10.0.0.0/8"])), Ok(()));
}

#[test]
fn a_name_without_an_address_has_its_own_refusal() {
    let destination = Destination::parse("https://hooks.example.com/").unwrap();
    let refusal = destination.judge_all(&[], &AddressPolicy::default()).unwrap_err();
    assert_eq!(refusal, Refusal::NoAddress);
    assert_eq!(refusal.code(), "no_address");
}

#[test]
fn localhost_stays_refused_whatever_a_resolver_says() {
    let destination = Destination::parse("https://localhost/").unwrap();
    assert!(destination.judge_all(&[address("8.8.8.8")], &AddressPolicy::default()).is_err());
}

#[test]
fn the_text_of_a_refusal_names_the_address_and_the_range() {
    let refusal = AddressPolicy::default().judge(address("100.64.0.1")).unwrap_err();
    assert_eq!(refusal.code(), "forbidden_address");
    assert_eq!(
        refusal.to_string(),
        "the address 100.64.0.1 is not public (carrier-grade NAT); --allow-destination 100.64.0.1 allows it"
    );
}

proptest! {
    #[test]
    fn any_address_inside_a_forbidden_network_is_refused((net, inside) in network_and_member()) {
        let refusal = AddressPolicy::default().judge(inside);
        prop_assert!(refusal.is_err(), "{} in {} passed", inside, net);

        let literal = match inside {
            IpAddr::V4(v4) => format!("https://{v4}/"),
            IpAddr::V6(v6) => format!("https://[{v6}]/"),
        };
        prop_assert_eq!(verdict(&literal, &AddressPolicy::default()), refusal);
    }

    #[test]
    fn no_accepted_address_is_special_to_the_standard_library(v4: Ipv4Addr, v6: Ipv6Addr, bits: u128) {
        if AddressPolicy::default().judge(v4.into()).is_ok() {
            prop_assert!(!v4.is_private() && !v4.is_loopback() && !v4.is_link_local() && !v4.is_multicast());
            prop_assert!(!v4.is_broadcast() && !v4.is_documentation() && !v4.is_unspecified());
        }
        let within_unicast = Ipv6Addr::from((bits >> 3) | (1 << 125));
        for candidate in [v6, within_unicast] {
            if AddressPolicy::default().judge(candidate.into()).is_ok() {
                prop_assert!(!candidate.is_loopback() && !candidate.is_unspecified() && !candidate.is_multicast());
                prop_assert!(!candidate.is_unique_local() && !candidate.is_unicast_link_local());
                prop_assert_eq!(candidate.to_ipv4(), None);
                prop_assert_eq!(candidate.segments()[0] >> 13, 1);
            }
        }
    }

    #[test]
    fn every_odd_number_spelling_of_an_address_gets_the_verdict_of_the_address(v4: Ipv4Addr, upper: bool) {
        let policy = AddressPolicy::default();
        let expected = policy.judge(v4.into());
        let [a, b, c, d] = v4.octets();
        let whole = u32::from(v4);
        let tail = whole & 0x00ff_ffff;
        for host in [
            v4.to_string(),
            format!("{v4}."),
            format!("{whole}"),
            format!("{whole:#x}"),
            format!("0{whole:o}"),
            format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
            format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
            format!("{a}.{tail}"),
            format!("{a}.{b}.{}", tail & 0xffff),
        ] {
            let text = if upper { format!("HTTPS://{}", host.to_uppercase()) } else { format!("https://{host}") };
            prop_assert_eq!(verdict(&text, &policy), expected.clone(), "{}", text);
        }
    }

    #[test]
    fn an_allow_list_opens_only_what_it_names(
        (net, candidate) in (any_network(), any::<IpAddr>()).prop_flat_map(|(net, other)| {
            (Just(net), prop_oneof![member_of(net), Just(other), network_and_member().prop_map(|(_, inside)| inside)])
        })
    ) {
        let closed = AddressPolicy::default().judge(candidate);
        let open = AddressPolicy { allowed: vec![net] }.judge(candidate);
        if net.contains(&candidate) || net.contains(&candidate.to_canonical()) {
            prop_assert_eq!(open, Ok(()));
        } else {
            prop_assert_eq!(open, closed);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic_and_a_parsed_one_is_a_fixpoint(text in any_text()) {
        if let Ok(destination) = Destination::parse(&text) {
            let again = Destination::parse(destination.as_str());
            prop_assert_eq!(again.as_ref(), Ok(&destination), "{}", text);
            prop_assert!(destination.as_str().starts_with("https://"));
            prop_assert!(destination.as_str().is_ascii());
            prop_assert!(destination.path_and_query().starts_with('/'));
            prop_assert_ne!(destination.port(), 0);
            prop_assert_eq!(
                format!("https://{}{}", destination.authority(), destination.path_and_query()),
                destination.as_str()
            );
            if let Host::Name(name) = destination.host() {
                prop_assert!(!name.ends_with('.') && name.parse::<IpAddr>().is_err());
                prop_assert_eq!(name.to_ascii_lowercase(), name);
            }
        }
    }
}

/// Parses and checks as far as possible without a resolver.
fn verdict(text: &str, policy: &AddressPolicy) -> Result<(), Refusal> {
    Destination::parse(text)?.judge_literal(policy)
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn allowing(networks: &[&str]) -> AddressPolicy {
    AddressPolicy { allowed: networks.iter().map(|net| net.parse().expect("a network")).collect() }
}

/// A forbidden network and its first, last or any other address.
fn network_and_member() -> impl Strategy<Value = (IpNet, IpAddr)> {
    proptest::sample::select(FORBIDDEN_NETS).prop_flat_map(|text| {
        let net: IpNet = text.parse().expect("a network");
        (Just(net), prop_oneof![1 => Just(net.network()), 1 => Just(net.broadcast()), 6 => member_of(net)])
    })
}

fn any_network() -> impl Strategy<Value = IpNet> {
    prop_oneof![
        (any::<Ipv4Addr>(), 0..=32_u8).prop_map(|(ip, length)| IpNet::V4(Ipv4Net::new_assert(ip, length))),
        (any::<Ipv6Addr>(), 0..=128_u8).prop_map(|(ip, length)| IpNet::V6(Ipv6Net::new_assert(ip, length))),
        proptest::sample::select(FORBIDDEN_NETS).prop_map(|text| text.parse().expect("a network")),
    ]
}

fn member_of(net: IpNet) -> BoxedStrategy<IpAddr> {
    match net {
        IpNet::V4(net) => any::<u32>()
            .prop_map(move |bits| {
                Ipv4Addr::from(u32::from(net.network()) | (bits & u32::from(net.hostmask()))).into()
            })
            .boxed(),
        IpNet::V6(net) => any::<u128>()
            .prop_map(move |bits| {
                Ipv6Addr::from(u128::from(net.network()) | (bits & u128::from(net.hostmask()))).into()
            })
            .boxed(),
    }
}

/// From random noise to texts that are almost a destination.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        any::<String>().prop_map(|rest| format!("https://{rest}")),
        "\\PC{1,20}(\\.\\PC{1,6})?".prop_map(|host| format!("https://{host}/")),
        "https://[a-zA-Z0-9._%x\\[\\]:-]{1,30}(:[0-9]{0,6})?(/[a-z0-9./%?&=;@'\"<>|^`{}]{0,30})?",
        "https://(xn--)?[a-z0-9-]{1,12}(\\.|。|．)(xn--[a-z0-9-]{1,12}|[äßéñ中文あア①٣ไทยا-ي]{1,8})\\.?(/\\PC{0,12})?",
        "https://[0-9a-fx]{1,10}(\\.[0-9a-fx]{1,10}){0,3}\\.?",
        "https://\\[[0-9a-f:.]{2,24}\\](:[0-9]{1,5})?",
    ]
}
