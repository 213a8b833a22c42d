//! Expected values: NumPy archives of the oracle, and comparison with tolerance.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// An array of an archive, its elements as f64 (which holds every f32 and every id exactly).
#[derive(Clone, Debug)]
pub struct Array {
    /// Extents, slowest first.
    pub shape: Vec<usize>,
    /// Elements, row-major.
    pub data: Vec<f64>,
}

impl Array {
    /// Row `index` along the first axis.
    pub fn row(&self, index: usize) -> &[f64] {
        let len: usize = self.shape[1..].iter().product();
        &self.data[index * len..(index + 1) * len]
    }

    /// The elements as ids.
    pub fn ids(&self) -> Vec<u32> {
        self.data.iter().map(|&x| x as i64 as u32).collect()
    }
}

/// The arrays of an `.npz` file by name: a zip of `.npy` files.
pub fn read_npz(path: &Path) -> std::io::Result<BTreeMap<String, Array>> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path)?)?;
    let mut arrays = BTreeMap::new();
    for i in 0..archive.len() {
        let file = archive.by_index(i)?;
        let name = file.name()?.trim_end_matches(".npy").to_string();
        let array = read_array(file, &name)?;
        arrays.insert(name, array);
    }
    Ok(arrays)
}

fn read_array(file: impl Read, name: &str) -> std::io::Result<Array> {
    use npyz::TypeChar;
    let file = npyz::NpyFile::new(file)?;
    let shape = file.shape().iter().map(|&n| n as usize).collect();
    let (kind, size) = match file.dtype() {
        npyz::DType::Plain(ty) => (ty.type_char(), ty.size_field()),
        _ => return Err(std::io::Error::other(format!("array {name} has a structured type"))),
    };
    let data = match (kind, size) {
        (TypeChar::Float, 4) => file.into_vec::<f32>()?.into_iter().map(f64::from).collect(),
        (TypeChar::Float, 8) => file.into_vec::<f64>()?,
        (TypeChar::Int, 4) => file.into_vec::<i32>()?.into_iter().map(f64::from).collect(),
        (TypeChar::Int, 8) => file.into_vec::<i64>()?.into_iter().map(|n| n as f64).collect(),
        _ => return Err(std::io::Error::other(format!("array {name} has a type that is not read"))),
    };
    Ok(Array { shape, data })
}

/// How far logits are from the expected ones, in standard deviations of the expected logits.
#[derive(Clone, Copy, Debug)]
pub struct Errors {
    /// Largest error.
    pub largest: f64,
    /// Root of the mean square.
    pub rms: f64,
    /// Median over positions of a position's largest error.
    pub median: f64,
    /// Share of positions with the same arg-max.
    pub same_greedy: f64,
}

/// Compares rows of `width` logits with the expected ones; `deviation` is the standard deviation to divide by.
pub fn compare(found: &[f32], expected: &[f64], width: usize, deviation: f64) -> Errors {
    assert_eq!(found.len(), expected.len(), "as many logits as expected");
    let rows = expected.len() / width;
    let mut largest = Vec::with_capacity(rows);
    let (mut square, mut same) = (0.0, 0);
    for row in 0..rows {
        let (f, e) = (&found[row * width..][..width], &expected[row * width..][..width]);
        let errors = f.iter().zip(e).map(|(&f, &e)| (f64::from(f) - e).abs() / deviation);
        largest.push(errors.clone().fold(0.0, |m, x| if x > m || x.is_nan() { x } else { m }));
        square += errors.map(|x| x * x).sum::<f64>();
        same += usize::from(arg_max(f.iter().map(|&x| f64::from(x))) == arg_max(e.iter().copied()));
    }
    let mut sorted = largest.clone();
    sorted.sort_by(f64::total_cmp);
    Errors {
        largest: *sorted.last().unwrap_or(&0.0),
        rms: (square / expected.len() as f64).sqrt(),
        median: sorted.get(rows / 2).copied().unwrap_or(0.0),
        same_greedy: same as f64 / rows as f64,
    }
}

/// Index of the largest element, the first of equals.
pub fn arg_max(values: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (i, x) in values.enumerate() {
        if x > best.1 {
            best = (i, x);
        }
    }
    best.0
}

/// Standard deviation of all elements.
pub fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt()
}
