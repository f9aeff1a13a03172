//! How much of its thread's stack a batch has used: blocks, procedures and strings nest in one another.

/// What statements may use where nobody says otherwise: half of what Rust gives a thread.
const BYTES_MOST: usize = 1 << 20;

/// The stack of a batch.
#[derive(Debug)]
pub(crate) struct Stack {
    base: usize,
    most: usize,
}

impl Stack {
    /// With a limit in bytes.
    pub fn new(most: Option<usize>) -> Self {
        Self { base: here(), most: most.unwrap_or(BYTES_MOST) }
    }

    /// A batch begins here.
    pub fn begin(&mut self) {
        self.base = here();
    }

    /// Whether nothing more may be put within what is executed.
    pub fn is_spent(&self) -> bool {
        self.base.abs_diff(here()) > self.most
    }
}

/// Where the stack is.
#[inline(never)]
fn here() -> usize {
    let local = 0u8;
    std::ptr::from_ref(std::hint::black_box(&local)).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down(stack: &Stack, left: u32) -> u32 {
        match stack.is_spent() || left == 0 {
            true => left,
            false => std::hint::black_box(down(stack, left - 1)),
        }
    }

    #[test]
    fn a_limit_ends_a_recursion_before_the_thread_does() {
        let mut stack = Stack::new(None);
        stack.begin();
        assert!(!stack.is_spent());
        let left = down(&stack, u32::MAX);
        assert!(left > 0 && left < u32::MAX - 1000, "{left}");
        assert!(!stack.is_spent(), "it is free again");
    }
}
