//! Headers of the frames that this transaction has written.
//!
//! If SQLite writes a page that it spills again, it overwrites the page's frame without the header
//! (`sqlite3WalFrames`). A sealed unit needs both. With the kept headers the shim need not read and
//! open the frame for its 24 bytes of header.

use pellucid::wal::FRAME_HEADER_BYTES;

/// The most headers kept, 6 MiB. A later frame is read for its header.
const MOST: usize = 1 << 18;
/// Headers for which the memory is kept when a larger transaction is over, 96 KiB.
const ROOM: usize = 1 << 12;

/// One frame's header, as SQLite sees it.
pub type Header = [u8; FRAME_HEADER_BYTES];

/// Headers of successive frames.
#[derive(Debug, Default)]
pub struct FrameHeaders {
    first: u32,
    kept: Vec<Header>,
}

impl FrameHeaders {
    /// The header of frame `number`, if it is kept.
    pub fn get(&self, number: u32) -> Option<&Header> {
        self.kept.get(number.checked_sub(self.first)? as usize)
    }

    /// Keeps the header of frame `number`, which was just written.
    pub fn keep(&mut self, number: u32, header: &Header) {
        let index = number.checked_sub(self.first).map(|index| index as usize);
        match index.filter(|_| !self.kept.is_empty()) {
            Some(index) if index < self.kept.len() => self.kept[index] = *header,
            Some(index) if index >= MOST => {}
            Some(index) if index == self.kept.len() => self.kept.push(*header),
            _ => {
                self.kept.clear();
                self.kept.push(*header);
                self.first = number;
            }
        }
    }

    /// Forgets the headers of frame `number` and of those behind it.
    pub fn forget_from(&mut self, number: u32) {
        self.kept.truncate(number.saturating_sub(self.first) as usize);
        if self.kept.is_empty() {
            self.kept.shrink_to(ROOM);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(byte: u8) -> Header {
        [byte; FRAME_HEADER_BYTES]
    }

    #[test]
    fn headers_of_successive_frames_are_kept_as_written_last() {
        let mut headers = FrameHeaders::default();
        assert_eq!(headers.get(0), None);
        for number in [7, 8, 9, 8] {
            headers.keep(number, &header(number as u8 + u8::from(headers.get(number).is_some())));
        }
        let found = [6, 7, 8, 9, 10].map(|number| headers.get(number).map(|header| header[0]));
        assert_eq!(found, [None, Some(7), Some(9), Some(9), None]);
        headers.forget_from(8);
        assert_eq!([7, 8].map(|number| headers.get(number).is_some()), [true, false]);
        for elsewhere in [20, 3] {
            headers.keep(elsewhere, &header(1));
            assert_eq!(headers.get(7), None, "no gap is bridged");
            assert_eq!(headers.get(elsewhere), Some(&header(1)));
        }
        headers.forget_from(0);
        assert_eq!(headers.get(3), None);
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let mut headers = FrameHeaders::default();
        for number in 1..=MOST as u32 + 2 {
            headers.keep(number, &header(1));
        }
        assert_eq!(headers.get(MOST as u32), Some(&header(1)));
        assert_eq!(headers.get(MOST as u32 + 1), None);
        headers.keep(MOST as u32, &header(2));
        assert_eq!(headers.get(MOST as u32), Some(&header(2)));
        assert_eq!(headers.get(1), Some(&header(1)));
    }
}
