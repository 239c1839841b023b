//! Chance that comes out the same on every machine and in every run.

/// Marsaglia's xorshift64.
pub struct Random(u64);

impl Random {
    /// Equal seeds give equal sequences.
    pub fn new(seed: u64) -> Self {
        let mut random = Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Neighbouring seeds start alike.
        for _ in 0..8 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// One of them.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let index = self.next() >> 16;
        from[usize::try_from(index % from.len() as u64).unwrap()].clone()
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        (self.next() >> 16).is_multiple_of(times)
    }
}
