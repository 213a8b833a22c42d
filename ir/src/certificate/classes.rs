//! Classes of equal terms: a union-find over ids.

/// Which terms are known to be equal.
pub struct Classes(Vec<u32>);

impl Classes {
    /// Every one of `len` terms is equal to itself only.
    pub fn new(len: usize) -> Classes {
        Classes((0..len as u32).collect())
    }

    /// The representative of a class; for an id out of range the id.
    pub fn find(&mut self, mut x: u32) -> u32 {
        while let Some(&parent) = self.0.get(x as usize) {
            if parent == x {
                break;
            }
            let above = self.0[parent as usize];
            self.0[x as usize] = above;
            x = above;
        }
        x
    }

    /// Whether two terms are known to be equal.
    pub fn equal(&mut self, a: u32, b: u32) -> bool {
        self.find(a) == self.find(b)
    }

    /// From now on two terms are equal.
    pub fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        if let Some(parent) = self.0.get_mut(a.max(b) as usize) {
            *parent = a.min(b);
        }
    }
}
