//! Laws tried on inputs: scalar laws on words, laws of values on graphs through the evaluator.

use std::collections::HashMap;

use ds4_compiler::rewrite::{Instances, instances};
use ds4_ir::eval::{Data, Evaluator, States, Tensor, WeightSource};
use ds4_ir::formats::WeightRow;
use ds4_ir::graph::{Graph, GraphTables, Weight};
use ds4_ir::rules::scalar::{Instance, ScalarRule, Unary, VARIABLES};
use ds4_ir::rules::value::ValueRule;
use ds4_ir::{Format, Step, Type, verify};

/// A generator of words, seeded.
#[derive(Clone)]
pub struct Words(u64);

impl Words {
    /// Words of a seed.
    pub fn new(seed: u64) -> Words {
        Words(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next word.
    pub fn word(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 24) as u32
    }

    /// Bits of a float: often special, often near others, seldom any.
    pub fn float(&mut self) -> u32 {
        const SPECIAL: [u32; 16] = [
            0,
            0x8000_0000,
            0x3f80_0000,
            0xbf80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            1,
            0x8000_0001,
            0x007f_ffff,
            0x0080_0000,
            0x7f7f_ffff,
            0x4000_0000,
            0x3f00_0000,
            0x477f_e000,
            0x3380_0000,
        ];
        match self.word() % 4 {
            0 => SPECIAL[self.word() as usize % SPECIAL.len()],
            1 | 2 => ((self.word() as i32 >> 8) as f32 / 65536.0).to_bits(),
            _ => self.word(),
        }
    }

    /// An integer: often small or at an end of the range.
    pub fn integer(&mut self) -> u32 {
        match self.word() % 4 {
            0 => [0, 1, u32::MAX, 0x7fff_ffff, 0x8000_0000, 2, 64, 128][self.word() as usize % 8],
            1 | 2 => (self.word() % 2048).wrapping_sub(1024),
            _ => self.word(),
        }
    }
}

/// A counterexample of a scalar law on random words, if there is one among `count`; inputs that no side is defined on are
/// passed over.
pub fn scalar_difference(rule: &ScalarRule, count: usize, seed: u64) -> Option<String> {
    let mut words = Words::new(seed);
    let mut draw = |_| (words.float(), words.integer());
    for _ in 0..count {
        let drawn: Vec<(u32, u32)> = (0..VARIABLES).map(&mut draw).collect();
        if let Some(found) = Instance::new(rule, &drawn).and_then(|instance| instance.difference()) {
            return Some(found);
        }
    }
    None
}

/// The number of inputs of a unary float law that were tried, every `stride`th of all, or the first that makes a difference.
///
/// # Errors
/// The input; or the law is of another form.
pub fn unary(rule: &'static ScalarRule, stride: usize) -> Result<u64, String> {
    let law = Unary::new(rule).ok_or("the law is no chain of unary operations")?;
    let half = |from: u64| {
        let mut inputs = (from << 31..(from + 1) << 31).step_by(stride).map(|bits| bits as u32);
        let different = inputs.find(|&bits| !law.holds(bits));
        different
            .map_or(Ok((1u64 << 31).div_ceil(stride as u64)), |bits| Err(format!("{bits:#010x} makes a difference")))
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let first = half(0)?;
        Ok(first + other.join().map_err(|_| "a thread failed")??)
    })
}

/// Weights with random bits.
pub struct RandomWeights {
    rows: HashMap<(u32, usize), Vec<u8>>,
    formats: Vec<Format>,
}

impl RandomWeights {
    /// For the weights of a graph.
    pub fn new(graph: &Graph<'_>, seed: u64) -> RandomWeights {
        let mut words = Words::new(seed);
        let mut weights = RandomWeights { rows: HashMap::new(), formats: vec![] };
        let step = Step { position: 0, columns: 1, outputs: 1 };
        for (i, row) in graph.weights.iter().enumerate() {
            let format = row.ty.format().unwrap_or(Format::F32);
            let extents = graph.extents(row.shape, step);
            let (last, outer) = extents.split_last().map_or((1, 1), |(&last, outer)| (last, outer.iter().product()));
            weights.formats.push(format);
            for index in 0..outer {
                let bytes = match format {
                    Format::F32 => (0..last).flat_map(|_| words.float().to_le_bytes()).collect(),
                    _ => (0..format.row_bytes(last).unwrap_or(0)).map(|_| words.word() as u8).collect(),
                };
                weights.rows.insert((i as u32, index), bytes);
            }
        }
        weights
    }
}

impl WeightSource for RandomWeights {
    fn row(&self, weight: Weight, row: usize) -> Option<WeightRow<'_>> {
        let data = self.rows.get(&(weight.0, row))?;
        Some(WeightRow::plain(self.formats[weight.0 as usize], data))
    }
}

/// The text of an example: `in a: [2, 3]` is a weight that is widened.
pub fn parse(text: &str) -> Result<GraphTables, String> {
    let expand = |line: &str| match line.trim().strip_prefix("in ").and_then(|rest| rest.split_once(':')) {
        Some((name, shape)) => {
            format!("weight {name}: w.f32{}\nw_{name} = weight {name}\n{name} = widen w_{name}\n", shape.trim())
        }
        None => format!("{}\n", line.trim()),
    };
    let text: String = text.lines().map(expand).collect();
    ds4_ir::text::parse(&text, "example").map_err(|diagnostic| format!("{diagnostic}\n{text}"))
}

/// The instances of a rule in a text.
///
/// # Errors
/// The text is no graph.
pub fn instances_in(text: &str, rule: &'static ValueRule) -> Result<Instances, String> {
    let tables = parse(text)?;
    verify::verify(&tables.view()).map_err(|fault| fault.to_string())?;
    Ok(instances(&tables.view(), rule))
}

const STEPS: [Step; 3] = [
    Step { position: 0, columns: 2, outputs: 1 },
    Step { position: 5, columns: 3, outputs: 2 },
    Step { position: 9, columns: 1, outputs: 1 },
];

/// How many elements of both sides of instances were compared, over some random inputs, or the first difference.
///
/// # Errors
/// The pair and the input; or the graph does not run.
pub fn compare(found: &Instances, inputs: u64) -> Result<usize, String> {
    let graph = found.terms.view();
    verify::verify(&graph).map_err(|fault| fault.to_string())?;
    let mut compared = 0;
    for seed in 0..inputs {
        let weights = RandomWeights::new(&graph, seed + 1);
        let step = STEPS[seed as usize % STEPS.len()];
        let tokens: Vec<u32> = (0..step.columns).map(|i| i % 2).collect();
        let wanted: Vec<_> = found.pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
        let mut states = States::new(&graph);
        let results = Evaluator::new(graph, &weights).step(&mut states, step, &tokens, &wanted);
        let results = results.map_err(|fault| fault.to_string())?;
        for (pair, (a, b)) in results.chunks(2).map(|pair| (&pair[0], &pair[1])).enumerate() {
            let (left, right) = found.pairs[pair];
            compared += same(a, b).map_err(|at| format!("{left} and {right} differ at {at} for input {seed}"))?;
        }
    }
    Ok(compared)
}

/// How many elements of the outputs of two graphs were compared, over some random inputs, or the first difference.
///
/// # Errors
/// The output and the input; or a graph does not run.
pub fn same_outputs(one: &GraphTables, other: &GraphTables, inputs: u64) -> Result<usize, String> {
    let graphs = [one.view(), other.view()];
    let mut compared = 0;
    for seed in 0..inputs {
        let weights = RandomWeights::new(&graphs[0], seed + 1);
        let step = STEPS[seed as usize % STEPS.len()];
        let tokens: Vec<u32> = (0..step.columns).map(|i| i % 2).collect();
        let run = |graph: &Graph<'_>| {
            let wanted: Vec<_> = graph.outputs.iter().map(|row| row.value).collect();
            let mut states = States::new(graph);
            Evaluator::new(*graph, &weights)
                .step(&mut states, step, &tokens, &wanted)
                .map_err(|fault| fault.to_string())
        };
        let (a, b) = (run(&graphs[0])?, run(&graphs[1])?);
        for (place, (a, b)) in a.iter().zip(&b).enumerate() {
            compared += same(a, b).map_err(|at| format!("output {place} differs at {at} for input {seed}"))?;
        }
    }
    Ok(compared)
}

/// Number of elements compared, or the first place of a difference. Where the left side has no value the right may have any.
///
/// # Errors
/// The place.
pub fn same(a: &Tensor, b: &Tensor) -> Result<usize, usize> {
    let (x, y) = (words(a), words(b));
    if a.extents != b.extents || x.len() != y.len() {
        return Err(0);
    }
    let absent = |t: &Tensor, i: usize| {
        let cells = t.absent.as_ref().map_or(0, |absent| absent.len());
        cells > 0 && t.absent.as_ref().is_some_and(|absent| absent[i * cells / x.len()])
    };
    let differs = |i: &usize| x[*i] != y[*i] && !absent(a, *i) || absent(b, *i) && !absent(a, *i);
    (0..x.len()).find(differs).map_or(Ok(x.len()), Err)
}

/// All that a tensor holds as words; NaN is canonical.
fn words(t: &Tensor) -> Vec<u32> {
    let float = |x: f32| if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() };
    match &t.data {
        Data::Words(words) if t.ty == Type::F32 => words.iter().map(|&w| float(f32::from_bits(w))).collect(),
        Data::Words(words) => words.to_vec(),
        // Scale and codes of each element, so that words are as many as elements.
        Data::Q8 { codes, scales } => {
            let per_scale = codes.len() / scales.len().max(1);
            let word = |(i, &code): (usize, &i8)| float(scales[i / per_scale]).rotate_left(8) ^ u32::from(code as u8);
            codes.iter().enumerate().map(word).collect()
        }
        Data::Rows { rows, .. } => rows.to_vec(),
    }
}
