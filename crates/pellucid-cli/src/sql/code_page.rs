//! Code pages of scripts and of what is written (-f): Windows' numbers of them.

mod reader;

use std::str::FromStr;

use encoding_rs::{self as table, Encoding};
use zeroize::Zeroizing;

pub use reader::Decoded;

/// How characters become bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// 65001
    Utf8,
    /// 1200, 1201
    Utf16 { is_little: bool },
    /// 20127
    Ascii,
    /// 28591: the first 256 characters of Unicode.
    Latin1,
    /// Those of MS-DOS: ASCII, and these characters from 128 on.
    Oem(&'static str),
    /// All others.
    Table(&'static Encoding),
}

/// A code page by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodePage {
    /// Its number.
    pub number: u16,
    /// What it is.
    pub coding: Coding,
}

impl CodePage {
    /// UTF-8, which everything is without -f.
    pub const UTF_8: Self = Self { number: 65001, coding: Coding::Utf8 };
    /// What -u writes.
    pub const UTF_16: Self = Self { number: 1200, coding: Coding::Utf16 { is_little: true } };

    fn of(number: u16) -> Option<Self> {
        let coding = match number {
            65001 => Coding::Utf8,
            1200 => Coding::Utf16 { is_little: true },
            1201 => Coding::Utf16 { is_little: false },
            20127 => Coding::Ascii,
            28591 => Coding::Latin1,
            437 => Coding::Oem(OEM_437),
            850 => Coding::Oem(OEM_850),
            852 => Coding::Oem(OEM_852),
            858 => Coding::Oem(OEM_858),
            number => Coding::Table(encoding(number)?),
        };
        Some(Self { number, coding })
    }

    /// The characters of `bytes`, which are whole lines; none if some are no characters of this code page. UTF-16 is
    /// decoded by whoever reads lines.
    pub fn decode(self, bytes: &[u8]) -> Option<Zeroizing<String>> {
        let single = |upper: &dyn Fn(u8) -> Option<char>| {
            let characters = bytes.iter().map(|&byte| match byte {
                0..=127 => Some(char::from(byte)),
                byte => upper(byte),
            });
            characters.collect::<Option<String>>()
        };
        let text = match self.coding {
            Coding::Utf8 | Coding::Utf16 { .. } => std::str::from_utf8(bytes).ok()?.to_owned(),
            Coding::Ascii => single(&|_| None)?,
            Coding::Latin1 => single(&|byte| Some(char::from(byte)))?,
            Coding::Oem(upper) => single(&|byte| upper.chars().nth(usize::from(byte) - 128))?,
            Coding::Table(encoding) => {
                encoding.decode_without_bom_handling_and_without_replacement(bytes)?.into_owned()
            }
        };
        Some(Zeroizing::new(text))
    }

    /// Appends `text` to `out`; `?` stands for a character that this code page does not have.
    pub fn encode(self, text: &str, out: &mut Vec<u8>) {
        match self.coding {
            Coding::Utf8 => out.extend_from_slice(text.as_bytes()),
            Coding::Utf16 { is_little: true } => {
                out.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
            }
            Coding::Utf16 { is_little: false } => {
                out.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
            }
            Coding::Ascii => out.extend(text.chars().map(|c| below(c, 128))),
            Coding::Latin1 => out.extend(text.chars().map(|c| below(c, 256))),
            Coding::Oem(upper) => out.extend(text.chars().map(|c| {
                let at = upper.chars().position(|known| known == c);
                let byte = at.and_then(|at| u8::try_from(at + 128).ok());
                byte.unwrap_or_else(|| below(c, 128))
            })),
            Coding::Table(encoding) => {
                let (bytes, _, misses) = encoding.encode(text);
                if !misses {
                    return out.extend_from_slice(&bytes);
                }
                let mut letter = [0; 4];
                for c in text.chars() {
                    match encoding.encode(c.encode_utf8(&mut letter)) {
                        (bytes, _, false) => out.extend_from_slice(&bytes),
                        _ => out.push(b'?'),
                    }
                }
            }
        }
    }

    /// What a file in this code page begins with.
    pub fn mark(self) -> &'static [u8] {
        match self.coding {
            Coding::Utf16 { is_little: true } => &[0xff, 0xfe],
            Coding::Utf16 { is_little: false } => &[0xfe, 0xff],
            _ => &[],
        }
    }
}

fn below(c: char, end: u32) -> u8 {
    u8::try_from(u32::from(c)).ok().filter(|byte| u32::from(*byte) < end).unwrap_or(b'?')
}

/// Those that have a table.
fn encoding(number: u16) -> Option<&'static Encoding> {
    Some(match number {
        866 => table::IBM866,
        874 => table::WINDOWS_874,
        932 => table::SHIFT_JIS,
        936 => table::GBK,
        949 => table::EUC_KR,
        950 => table::BIG5,
        1250 => table::WINDOWS_1250,
        1251 => table::WINDOWS_1251,
        1252 => table::WINDOWS_1252,
        1253 => table::WINDOWS_1253,
        1254 => table::WINDOWS_1254,
        1255 => table::WINDOWS_1255,
        1256 => table::WINDOWS_1256,
        1257 => table::WINDOWS_1257,
        1258 => table::WINDOWS_1258,
        10000 => table::MACINTOSH,
        20866 => table::KOI8_R,
        21866 => table::KOI8_U,
        28592 => table::ISO_8859_2,
        28593 => table::ISO_8859_3,
        28594 => table::ISO_8859_4,
        28595 => table::ISO_8859_5,
        28596 => table::ISO_8859_6,
        28597 => table::ISO_8859_7,
        28598 => table::ISO_8859_8,
        28603 => table::ISO_8859_13,
        28605 => table::ISO_8859_15,
        54936 => table::GB18030,
        _ => return None,
    })
}

/// -f: the code pages of scripts and of what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodePages {
    /// Of scripts.
    pub input: Option<CodePage>,
    /// Of what is written.
    pub output: Option<CodePage>,
}

impl FromStr for CodePages {
    type Err = String;

    /// `1252`, or `i:1252`, `o:65001` or both of them with a comma.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut pages = Self { input: None, output: None };
        for part in text.split(',') {
            let part = part.trim();
            let (side, number) = match part.split_once(':') {
                Some((side, number)) => (side.to_ascii_lowercase(), number),
                None => (String::new(), part),
            };
            let page = number.trim().parse().ok().and_then(CodePage::of);
            let page = page.ok_or_else(|| {
                format!(
                    "code page `{number}` is not known here: known are 437, 850, 852, 858, 866, 874, 932, 936, 949, 950, \
                     1200, 1201, 1250 to 1258, 10000, 20127, 20866, 21866, 28591 to 28598, 28603, 28605, 54936 and 65001"
                )
            })?;
            match side.as_str() {
                "" if text.contains(',') => {
                    return Err("two code pages are given as `i:1252,o:65001`".to_owned())
                }
                "" => pages = Self { input: Some(page), output: Some(page) },
                "i" if pages.input.is_none() => pages.input = Some(page),
                "o" if pages.output.is_none() => pages.output = Some(page),
                _ => return Err("a code page is given as `1252`, `i:1252` or `o:1252`".to_owned()),
            }
        }
        Ok(pages)
    }
}

/// The upper half of code page 437.
const OEM_437: &str = "\
     ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒ\
     áíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
     └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
     αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";
/// The upper half of code page 850.
const OEM_850: &str = "\
     ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒ\
     áíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐\
     └┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀\
     ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}";
/// The upper half of code page 852.
const OEM_852: &str = "\
     ÇüéâäůćçłëŐőîŹÄĆÉĹĺôöĽľŚśÖÜŤťŁ×č\
     áíóúĄąŽžĘę¬źČş«»░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐\
     └┴┬├─┼Ăă╚╔╩╦╠═╬¤đĐĎËďŇÍÎě┘┌█▄ŢŮ▀\
     ÓßÔŃńňŠšŔÚŕŰýÝţ´\u{ad}˝˛ˇ˘§÷¸°¨˙űŘř■\u{a0}";
/// The upper half of code page 858.
const OEM_858: &str = "\
     ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒ\
     áíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐\
     └┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈ€ÍÎÏ┘┌█▄¦Ì▀\
     ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}";

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u16) -> CodePage {
        CodePage::of(number).unwrap()
    }

    #[test]
    fn bytes_are_the_characters_of_their_code_page() {
        for (number, bytes, text) in [
            (1252, &b"Jos\xe9 \x80"[..], "José €"),
            (1251, b"\xcf\xf0", "Пр"),
            (28591, b"\xe9\x80", "é\u{80}"),
            (437, b"\x82\xe1", "éß"),
            (850, b"\x82\xd5", "éı"),
            (858, b"\xd5", "€"),
            (852, b"\x88", "ł"),
            (932, b"\x93\xfa", "日"),
            (936, b"\xc8\xd5", "日"),
            (65001, "日".as_bytes(), "日"),
        ] {
            assert_eq!(page(number).decode(bytes).unwrap().as_str(), text, "{number}");
            let mut out = Vec::new();
            page(number).encode(text, &mut out);
            assert_eq!(out, bytes, "{number}");
        }
        let all: String = (128..=255_u8).map(char::from).collect();
        for number in [437, 850, 852, 858] {
            let Coding::Oem(upper) = page(number).coding else { panic!() };
            assert_eq!(upper.chars().count(), all.chars().count(), "{number}");
        }
    }

    #[test]
    fn what_a_code_page_does_not_have_is_told() {
        assert!(page(20127).decode(b"a\x80").is_none());
        assert!(page(932).decode(b"\x81\x00").is_none());
        assert!(page(65001).decode(b"\xe9").is_none());
        let mut out = Vec::new();
        for number in [1252, 437, 20127, 28591] {
            page(number).encode("a日b", &mut out);
        }
        assert_eq!(out, b"a?ba?ba?ba?b");
        page(1200).encode("aé", &mut out);
        assert!(out.ends_with(b"a\0\xe9\0"));
    }

    #[test]
    fn both_sides_have_their_own() {
        let numbers = |text: &str| {
            let pages = text.parse::<CodePages>()?;
            let number = |page: Option<CodePage>| page.map_or(0, |page| page.number);
            Ok::<_, String>((number(pages.input), number(pages.output)))
        };
        for (text, found) in [
            ("1252", (1252, 1252)),
            ("i:1252", (1252, 0)),
            ("o:65001", (0, 65001)),
            ("i:437,o:1200", (437, 1200)),
            ("O:850,I:1251", (1251, 850)),
        ] {
            assert_eq!(numbers(text), Ok(found));
        }
        for wrong in ["", "latin1", "42", "i:", "x:1252", "1252,437", "i:437,i:850"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }
}
