//! Scalar bodies: what a `map` does to one element.
//!
//! Scalars are hash-consed nodes over typed operands; a body is a result node and the types of its parameters. Every
//! rounding is a node. The functions of the contract (`exp` ...) are nodes too; their expansion is in
//! [`crate::numerics`].

use std::collections::HashMap;

use crate::entity::Run;

crate::entities! {
    /// A scalar node.
    Scalar = "x";
    /// A scalar body.
    Body = "b";
}

/// Type of a scalar. The numbers are part of the plan format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
pub enum ScalarType {
    /// IEEE binary32.
    F32 = 0,
    /// 32-bit integer, two's complement, wrapping.
    I32 = 1,
    /// Truth value; lives inside bodies only.
    Bool = 2,
    /// An index that may be masked.
    Id = 3,
}

impl ScalarType {
    /// The type of a number, if it is one.
    pub fn from_number(number: u32) -> Option<ScalarType> {
        use ScalarType::*;
        [F32, I32, Bool, Id].get(number as usize).copied()
    }

    /// The name in IR text.
    pub fn name(self) -> &'static str {
        ["f32", "i32", "bool", "id"][self as usize]
    }
}

/// Declares the scalar operations: name in IR text, number in the tables, operand types and result type.
macro_rules! scalar_ops {
    ($($(#[$meta:meta])* $op:ident = $number:literal $name:literal ($($arg:ident),*) -> $result:ident;)*) => {
        /// A scalar operation. `Param`, `F32` and `I32` have no operands and carry a word.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u32)]
        pub enum ScalarOp {
            /// Parameter: the low byte of the word is its type, the rest its index.
            Param = 0,
            /// Constant binary32; the word is its bits.
            F32 = 1,
            /// Constant integer; the word is its bits.
            I32 = 2,
            $($(#[$meta])* $op = $number,)*
        }

        impl ScalarOp {
            /// All operations with operands, in the order of their numbers.
            pub const ALL: &[ScalarOp] = &[$(ScalarOp::$op),*];

            /// The operation of a number, if it is one.
            pub fn from_number(number: u32) -> Option<ScalarOp> {
                Some(match number {
                    0 => ScalarOp::Param,
                    1 => ScalarOp::F32,
                    2 => ScalarOp::I32,
                    $($number => ScalarOp::$op,)*
                    _ => return None,
                })
            }

            /// The name in IR text.
            pub fn name(self) -> &'static str {
                match self {
                    ScalarOp::Param => "param",
                    ScalarOp::F32 => "f32",
                    ScalarOp::I32 => "i32",
                    $(ScalarOp::$op => $name,)*
                }
            }

            /// Operand types and result type; `None` for parameters and constants.
            pub fn signature(self) -> Option<(&'static [ScalarType], ScalarType)> {
                use ScalarType::*;
                match self {
                    ScalarOp::Param | ScalarOp::F32 | ScalarOp::I32 => None,
                    $(ScalarOp::$op => Some((&[$($arg),*], $result)),)*
                }
            }
        }
    };
}

scalar_ops! {
    /// Rounded sum.
    Add = 10 "add" (F32, F32) -> F32;
    /// Rounded difference.
    Sub = 11 "sub" (F32, F32) -> F32;
    /// Rounded product.
    Mul = 12 "mul" (F32, F32) -> F32;
    /// Rounded quotient.
    Div = 13 "div" (F32, F32) -> F32;
    /// Rounded square root.
    Sqrt = 14 "sqrt" (F32) -> F32;
    /// Sign flipped.
    Neg = 15 "neg" (F32) -> F32;
    /// Sign cleared.
    Abs = 16 "abs" (F32) -> F32;
    /// Minimum in the contract's order (-0 below +0, NaN if an operand is).
    Min = 17 "min" (F32, F32) -> F32;
    /// Maximum in the contract's order.
    Max = 18 "max" (F32, F32) -> F32;
    /// The contract's `exp`.
    Exp = 19 "exp" (F32) -> F32;
    /// The contract's `log`.
    Log = 20 "log" (F32) -> F32;
    /// The contract's `log1p`.
    Log1p = 21 "log1p" (F32) -> F32;
    /// The contract's `sin`.
    Sin = 22 "sin" (F32) -> F32;
    /// The contract's `cos`.
    Cos = 23 "cos" (F32) -> F32;
    /// Largest integer not above.
    Floor = 24 "floor" (F32) -> F32;
    /// Smallest integer not below.
    Ceil = 25 "ceil" (F32) -> F32;
    /// Towards zero.
    Trunc = 26 "trunc" (F32) -> F32;
    /// Nearest integer, ties to even.
    RoundEven = 27 "round_even" (F32) -> F32;
    /// Rounded to binary16 and widened.
    RoundF16 = 28 "round_f16" (F32) -> F32;
    /// Rounded to bfloat16 and widened.
    RoundBf16 = 29 "round_bf16" (F32) -> F32;
    /// Rounded to E4M3 and widened; above 448 by half a step or more is NaN.
    RoundE4m3 = 30 "round_e4m3" (F32) -> F32;
    /// Rounded to E2M1 and widened; operands lie in [-6, 6].
    RoundE2m1 = 31 "round_e2m1" (F32) -> F32;
    /// The first operand if true, else the second.
    SelectF32 = 32 "select_f32" (Bool, F32, F32) -> F32;
    /// Integer to float, exact below 2^24, else rounded to nearest even.
    FloatOf = 33 "float" (I32) -> F32;
    /// The bits as a float.
    FromBits = 34 "from_bits" (I32) -> F32;
    /// The bits of a float, NaN made canonical.
    ToBits = 35 "to_bits" (F32) -> I32;
    /// Wrapping sum.
    AddI = 40 "addi" (I32, I32) -> I32;
    /// Wrapping difference.
    SubI = 41 "subi" (I32, I32) -> I32;
    /// Wrapping product.
    MulI = 42 "muli" (I32, I32) -> I32;
    /// Quotient rounded down; the divisor is a positive constant.
    DivI = 43 "divi" (I32, I32) -> I32;
    /// Remainder of `divi`: never negative.
    RemI = 44 "remi" (I32, I32) -> I32;
    /// Minimum of signed integers.
    MinI = 45 "mini" (I32, I32) -> I32;
    /// Maximum of signed integers.
    MaxI = 46 "maxi" (I32, I32) -> I32;
    /// Bitwise and.
    AndI = 47 "andi" (I32, I32) -> I32;
    /// Bitwise or.
    OrI = 48 "ori" (I32, I32) -> I32;
    /// Bitwise exclusive or.
    XorI = 49 "xori" (I32, I32) -> I32;
    /// Shift left by a constant below 32.
    ShlI = 50 "shli" (I32, I32) -> I32;
    /// Logical shift right by a constant below 32.
    ShrI = 51 "shri" (I32, I32) -> I32;
    /// Arithmetic shift right by a constant below 32.
    SarI = 52 "sari" (I32, I32) -> I32;
    /// The first operand if true, else the second.
    SelectI = 53 "select_i32" (Bool, I32, I32) -> I32;
    /// Float `<`; false for NaN; -0 equals +0.
    LtF = 60 "lt" (F32, F32) -> Bool;
    /// Float `==`; false for NaN; -0 equals +0.
    EqF = 61 "eq" (F32, F32) -> Bool;
    /// Signed `<`.
    LtI = 62 "lti" (I32, I32) -> Bool;
    /// Integer `==`.
    EqI = 63 "eqi" (I32, I32) -> Bool;
    /// Both.
    And = 64 "and" (Bool, Bool) -> Bool;
    /// Either.
    Or = 65 "or" (Bool, Bool) -> Bool;
    /// Negation.
    Not = 66 "not" (Bool) -> Bool;
    /// The index if true (it is then not negative), else masked.
    IdWhere = 67 "id_where" (Bool, I32) -> Id;
    /// Whether the id is not masked.
    Present = 68 "present" (Id) -> Bool;
}

/// A scalar node as the tables store it: operation and three words (operands, or the word of a leaf).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct ScalarRow {
    /// Number of the operation.
    pub op: u32,
    /// Operands, unused ones 0; for leaves the word is the first.
    pub words: [u32; 3],
}

/// A body as the tables store it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct BodyRow {
    /// Result node.
    pub result: Scalar,
    /// Parameter types in the pool of words, as numbers.
    pub params: Run,
}

/// The word of a parameter leaf.
pub fn param_word(index: u32, ty: ScalarType) -> u32 {
    index << 8 | ty as u32
}

/// Index and type of a parameter leaf.
pub fn param_of(word: u32) -> Option<(u32, ScalarType)> {
    Some((word >> 8, ScalarType::from_number(word & 0xff)?))
}

/// The type of a node whose row is verified.
pub fn scalar_type(rows: &[ScalarRow], x: Scalar) -> Option<ScalarType> {
    let row = rows.get(x.0 as usize)?;
    match ScalarOp::from_number(row.op)? {
        ScalarOp::Param => param_of(row.words[0]).map(|(_, ty)| ty),
        ScalarOp::F32 => Some(ScalarType::F32),
        ScalarOp::I32 => Some(ScalarType::I32),
        op => op.signature().map(|(_, result)| result),
    }
}

/// Hash-consing table of scalar nodes and bodies.
#[derive(Clone, Default, Debug)]
pub struct Scalars {
    rows: Vec<ScalarRow>,
    ids: HashMap<ScalarRow, Scalar>,
    bodies: Vec<BodyRow>,
    words: Vec<u32>,
    body_ids: HashMap<(Scalar, Vec<u32>), Body>,
}

impl Scalars {
    /// Rebuilds the table from verified columns (`scalars`, `bodies`, `body_params` of the graph tables).
    pub fn from_columns(rows: &[ScalarRow], bodies: &[BodyRow], words: &[u32]) -> Scalars {
        let ids = |(i, &row): (usize, &ScalarRow)| (row, Scalar(i as u32));
        let key = |(i, row): (usize, &BodyRow)| ((row.result, row.params.of(words).to_vec()), Body(i as u32));
        Scalars {
            rows: rows.to_vec(),
            ids: rows.iter().enumerate().map(ids).collect(),
            bodies: bodies.to_vec(),
            words: words.to_vec(),
            body_ids: bodies.iter().enumerate().map(key).collect(),
        }
    }

    /// The columns: nodes, bodies, pool of parameter types.
    pub fn columns(&self) -> (&[ScalarRow], &[BodyRow], &[u32]) {
        (&self.rows, &self.bodies, &self.words)
    }

    fn push(&mut self, row: ScalarRow) -> Scalar {
        *self.ids.entry(row).or_insert_with(|| {
            self.rows.push(row);
            Scalar(self.rows.len() as u32 - 1)
        })
    }

    /// The type of a node.
    pub fn ty(&self, x: Scalar) -> ScalarType {
        scalar_type(&self.rows, x).expect("nodes of this table are checked when they are made")
    }

    /// Parameter `index` of type `ty`.
    pub fn param(&mut self, index: u32, ty: ScalarType) -> Scalar {
        self.push(ScalarRow { op: ScalarOp::Param as u32, words: [param_word(index, ty), 0, 0] })
    }

    /// A float constant.
    pub fn f32(&mut self, value: f32) -> Scalar {
        self.push(ScalarRow { op: ScalarOp::F32 as u32, words: [value.to_bits(), 0, 0] })
    }

    /// An integer constant.
    pub fn i32(&mut self, value: i32) -> Scalar {
        self.push(ScalarRow { op: ScalarOp::I32 as u32, words: [value as u32, 0, 0] })
    }

    /// An operation on nodes of the right types; the error names operation and types.
    pub fn op(&mut self, op: ScalarOp, args: &[Scalar]) -> Result<Scalar, String> {
        let (wanted, _) = op.signature().ok_or_else(|| format!("`{}` is a leaf", op.name()))?;
        let found: Vec<_> = args.iter().map(|&x| self.ty(x)).collect();
        if found != wanted {
            return Err(format!("`{}` takes {wanted:?}, found {found:?}", op.name()));
        }
        self.check_constant_operand(op, args)?;
        let mut words = [0; 3];
        for (word, x) in words.iter_mut().zip(args) {
            *word = x.0;
        }
        Ok(self.push(ScalarRow { op: op as u32, words }))
    }

    /// Divisors are positive constants and shift counts constants below 32: every backend then agrees.
    fn check_constant_operand(&self, op: ScalarOp, args: &[Scalar]) -> Result<(), String> {
        use ScalarOp::*;
        let range = match op {
            DivI | RemI => 1..=i32::MAX,
            ShlI | ShrI | SarI => 0..=31,
            _ => return Ok(()),
        };
        let row = self.rows[args[1].0 as usize];
        if row.op == I32 as u32 && range.contains(&(row.words[0] as i32)) {
            return Ok(());
        }
        Err(format!("the second operand of `{}` is a constant in {range:?}", op.name()))
    }

    /// The body with this result and these parameter types.
    pub fn body(&mut self, params: &[ScalarType], result: Scalar) -> Result<Body, String> {
        self.check_params(params, result)?;
        let words: Vec<u32> = params.iter().map(|&t| t as u32).collect();
        if let Some(&body) = self.body_ids.get(&(result, words.clone())) {
            return Ok(body);
        }
        let body = Body(self.bodies.len() as u32);
        let run = Run::push(&mut self.words, &words);
        self.bodies.push(BodyRow { result, params: run });
        self.body_ids.insert((result, words), body);
        Ok(body)
    }

    fn check_params(&self, params: &[ScalarType], result: Scalar) -> Result<(), String> {
        if self.ty(result) == ScalarType::Bool {
            return Err("a body gives f32, i32 or id, not bool".into());
        }
        for x in reachable(&self.rows, result) {
            let row = self.rows[x.0 as usize];
            if row.op == ScalarOp::Param as u32 {
                let (index, ty) = param_of(row.words[0]).expect("made by `param`");
                if params.get(index as usize) != Some(&ty) {
                    return Err(format!("parameter {index} of type {} is not declared", ty.name()));
                }
            }
        }
        Ok(())
    }

    /// Parameter types and result of a body.
    pub fn of(&self, body: Body) -> (Vec<ScalarType>, Scalar) {
        let row = self.bodies[body.0 as usize];
        let params = row.params.of(&self.words).iter();
        (params.map(|&t| ScalarType::from_number(t).expect("made by `body`")).collect(), row.result)
    }
}

/// The operands of a node (none for leaves).
pub fn operands(row: &ScalarRow) -> &[u32] {
    let count = ScalarOp::from_number(row.op).and_then(ScalarOp::signature).map_or(0, |(args, _)| args.len());
    &row.words[..count]
}

/// The nodes that `result` needs, ascending: operands before users.
pub fn reachable(rows: &[ScalarRow], result: Scalar) -> Vec<Scalar> {
    let mut seen = std::collections::BTreeSet::from([result.0]);
    let mut stack = vec![result.0];
    while let Some(x) = stack.pop() {
        for &operand in operands(&rows[x as usize]) {
            if seen.insert(operand) {
                stack.push(operand);
            }
        }
    }
    seen.into_iter().map(Scalar).collect()
}
