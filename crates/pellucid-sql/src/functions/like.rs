//! Patterns of LIKE and PATINDEX: `%`, `_`, `[a-f]`, `[^x]`.
//!
//! Source: Microsoft's "LIKE (Transact-SQL)".

/// One thing that a pattern asks for.
#[derive(Debug, Clone, PartialEq)]
enum Item {
    /// `%`
    Any,
    /// `_`
    One,
    /// A character.
    Exactly(char),
    /// `[..]`
    Of { ranges: Vec<(char, char)>, negated: bool },
}

/// A pattern, ready to be compared with texts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pattern {
    items: Vec<Item>,
    sensitive: bool,
}

/// Characters by which texts are compared.
pub(super) fn letters(text: &str, sensitive: bool) -> Vec<char> {
    match sensitive {
        true => text.chars().collect(),
        false => text.chars().map(folded).collect(),
    }
}

/// Lower case, as long as that is one character.
fn folded(letter: char) -> char {
    let mut lower = letter.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(only), None) => only,
        _ => letter,
    }
}

impl Pattern {
    /// Reads a pattern of LIKE; the letter behind `escape` stands for itself.
    pub fn new(pattern: &str, escape: Option<char>, sensitive: bool) -> Self {
        let fold = |letter| if sensitive { letter } else { folded(letter) };
        let letters: Vec<char> = pattern.chars().collect();
        let mut items = Vec::new();
        let mut at = 0;
        while let Some(&letter) = letters.get(at) {
            at += 1;
            let item = match letter {
                letter if Some(letter) == escape && at < letters.len() => {
                    at += 1;
                    Item::Exactly(fold(letters[at - 1]))
                }
                '%' => Item::Any,
                '_' => Item::One,
                '[' => match class(&letters[at..], escape, fold) {
                    Some((item, used)) => {
                        at += used;
                        item
                    }
                    None => Item::Exactly('['),
                },
                letter => Item::Exactly(fold(letter)),
            };
            if !(item == Item::Any && items.last() == Some(&Item::Any)) {
                items.push(item);
            }
        }
        Self { items, sensitive }
    }

    /// Whether the whole of `text` is as the pattern says. Unless `exact`, spaces at its end may be missing in the
    /// pattern.
    pub fn matches(&self, text: &str, exact: bool) -> bool {
        let letters = letters(text, self.sensitive);
        let kept = match exact {
            true => letters.len(),
            false => letters.iter().rposition(|letter| *letter != ' ').map_or(0, |at| at + 1),
        };
        found_at(&self.items, &letters, kept)
    }

    /// Where the pattern is found first: a character's position from 1, 0 if nowhere.
    pub fn position(&self, text: &str) -> usize {
        let letters = letters(text, self.sensitive);
        let (start_free, items) = match self.items.split_first() {
            Some((Item::Any, rest)) => (true, rest),
            _ => (false, &self.items[..]),
        };
        let last = if start_free { letters.len() } else { 0 };
        let head = items.iter().position(|item| *item == Item::Any).unwrap_or(items.len());
        let (head, rest) = items.split_at(head);
        let begins = |at: usize| {
            let here = letters[at..].iter();
            letters.len() - at >= head.len()
                && head.iter().zip(here).all(|(item, letter)| item.takes(*letter))
        };
        // What follows a `%` is found behind the first place or behind no place at all.
        let found = (0..=last)
            .find(|at| begins(*at) && (!rest.is_empty() || at + head.len() == letters.len()));
        found
            .filter(|at| {
                found_at(rest, &letters[at + head.len()..], letters.len() - at - head.len())
            })
            .map_or(0, |at| at + 1)
    }
}

/// What follows `[`, and how many characters it is.
fn class(
    letters: &[char],
    escape: Option<char>,
    fold: impl Fn(char) -> char,
) -> Option<(Item, usize)> {
    let negated = letters.first() == Some(&'^');
    let mut at = usize::from(negated);
    let mut ranges = Vec::new();
    loop {
        let mut letter = *letters.get(at)?;
        if letter == ']' && !ranges.is_empty() {
            return Some((Item::Of { ranges, negated }, at + 1));
        }
        if Some(letter) == escape {
            at += 1;
            letter = *letters.get(at)?;
        }
        let end = match (letters.get(at + 1), letters.get(at + 2)) {
            (Some('-'), Some(end)) if *end != ']' => {
                at += 2;
                *end
            }
            _ => letter,
        };
        at += 1;
        ranges.push((fold(letter), fold(end)));
    }
}

impl Item {
    fn takes(&self, letter: char) -> bool {
        match self {
            Item::Any => false,
            Item::One => true,
            Item::Exactly(wanted) => *wanted == letter,
            Item::Of { ranges, negated } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&letter)) != *negated
            }
        }
    }
}

/// Whether `items` take all of `letters`, or all up to a place from `kept` on. Of several `%` only the last one has to
/// be tried again.
fn found_at(items: &[Item], letters: &[char], kept: usize) -> bool {
    let (mut item, mut letter) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while letter < letters.len() {
        match items.get(item) {
            Some(Item::Any) => {
                again = Some((item, letter));
                item += 1;
            }
            Some(one) if one.takes(letters[letter]) => {
                item += 1;
                letter += 1;
            }
            None if letter >= kept => return true,
            _ => match again {
                Some((any, from)) => {
                    again = Some((any, from + 1));
                    item = any + 1;
                    letter = from + 1;
                }
                None => return false,
            },
        }
    }
    items[item..].iter().all(|item| *item == Item::Any)
}
