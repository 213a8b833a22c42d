//! Types and operators of expressions.

/// Type of an expression, a local or an element of memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Type {
    /// IEEE binary32.
    F32,
    /// 32 bits; each operation says how it reads the sign.
    Word,
    /// A truth value; never in memory.
    Bool,
    /// An index that may be masked; in memory a word, all ones where masked.
    Id,
}

impl Type {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Type::F32 => "f32",
            Type::Word => "word",
            Type::Bool => "bool",
            Type::Id => "id",
        }
    }
}

/// Declares the operators that have operands: name, operand types, result type.
macro_rules! operators {
    ($($(#[$meta:meta])* $op:ident $name:literal ($($arg:ident),*) -> $result:ident;)*) => {
        /// An operator of expressions. The first group are leaves, which carry a word.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Operator {
            /// Constant binary32; the word is its bits.
            Float,
            /// Constant word.
            Int,
            /// A truth value; the word is 0 or 1.
            Truth,
            /// A local; the word is its number.
            Local,
            /// The value of an extent; the word is its number.
            Extent,
            /// The workgroup's coordinate along an axis of its part's grid; the word is the axis.
            Group,
            /// The lane within the workgroup.
            Lane,
            /// The masked id.
            Masked,
            $($(#[$meta])* $op,)*
        }

        impl Operator {
            /// All operators with operands.
            pub const ALL: &[Operator] = &[$(Operator::$op),*];

            /// The name in messages.
            pub fn name(self) -> &'static str {
                match self {
                    Operator::Float => "float",
                    Operator::Int => "int",
                    Operator::Truth => "truth",
                    Operator::Local => "local",
                    Operator::Extent => "extent",
                    Operator::Group => "group",
                    Operator::Lane => "lane",
                    Operator::Masked => "masked",
                    $(Operator::$op => $name,)*
                }
            }

            /// Operand types and result type; `None` for leaves.
            pub fn signature(self) -> Option<(&'static [Type], Type)> {
                use Type::*;
                match self {
                    $(Operator::$op => Some((&[$($arg),*], $result)),)*
                    _ => None,
                }
            }
        }
    };
}

operators! {
    /// Rounded sum.
    Add "add" (F32, F32) -> F32;
    /// Rounded difference.
    Sub "sub" (F32, F32) -> F32;
    /// Rounded product.
    Mul "mul" (F32, F32) -> F32;
    /// Rounded quotient.
    Div "div" (F32, F32) -> F32;
    /// Rounded square root.
    Sqrt "sqrt" (F32) -> F32;
    /// Sign flipped.
    Neg "neg" (F32) -> F32;
    /// Sign cleared.
    Abs "abs" (F32) -> F32;
    /// Largest integer not above.
    Floor "floor" (F32) -> F32;
    /// Smallest integer not below.
    Ceil "ceil" (F32) -> F32;
    /// Towards zero.
    Trunc "trunc" (F32) -> F32;
    /// Nearest integer, ties to even.
    RoundEven "round_even" (F32) -> F32;
    /// The bits of a float; of NaN any NaN's.
    Bits "bits" (F32) -> Word;
    /// The float with these bits.
    FromBits "from_bits" (Word) -> F32;
    /// The signed word as a float, rounded to nearest even beyond 2^24.
    FloatOf "float_of" (Word) -> F32;
    /// The signed word of an integral float within its range.
    IntOf "int_of" (F32) -> Word;
    /// Sum modulo 2^32.
    AddInt "add_int" (Word, Word) -> Word;
    /// Difference modulo 2^32.
    SubInt "sub_int" (Word, Word) -> Word;
    /// Product modulo 2^32.
    MulInt "mul_int" (Word, Word) -> Word;
    /// Unsigned quotient by a positive constant.
    DivInt "div_int" (Word, Word) -> Word;
    /// Unsigned remainder by a positive constant.
    RemInt "rem_int" (Word, Word) -> Word;
    /// Bitwise and.
    And "and" (Word, Word) -> Word;
    /// Bitwise or.
    Or "or" (Word, Word) -> Word;
    /// Bitwise exclusive or.
    Xor "xor" (Word, Word) -> Word;
    /// Left shift by a count below 32.
    Shl "shl" (Word, Word) -> Word;
    /// Logical right shift by a count below 32.
    Shr "shr" (Word, Word) -> Word;
    /// Arithmetic right shift by a count below 32.
    Sar "sar" (Word, Word) -> Word;
    /// Sum of the products of four pairs of signed bytes, exact.
    DotBytes "dot_bytes" (Word, Word) -> Word;
    /// Float `<`: -0 equals +0, false for NaN.
    Less "less" (F32, F32) -> Bool;
    /// Float `==`: -0 equals +0, false for NaN.
    Equal "equal" (F32, F32) -> Bool;
    /// Signed `<`.
    LessInt "less_int" (Word, Word) -> Bool;
    /// Unsigned `<`.
    Below "below" (Word, Word) -> Bool;
    /// `==` of words.
    EqualInt "equal_int" (Word, Word) -> Bool;
    /// Both.
    Both "both" (Bool, Bool) -> Bool;
    /// At least one.
    Either "either" (Bool, Bool) -> Bool;
    /// Negation.
    Not "not" (Bool) -> Bool;
    /// The second operand if the first is true, else the third.
    Select "select" (Bool, F32, F32) -> F32;
    /// The same of words.
    SelectInt "select_int" (Bool, Word, Word) -> Word;
    /// The id of an index (not all ones) if true, else the masked id.
    IdWhere "id_where" (Bool, Word) -> Id;
}

impl Operator {
    /// Number of operands.
    pub fn arity(self) -> usize {
        self.signature().map_or(0, |(args, _)| args.len())
    }
}
