//! Registers: one with a name for each local, numbered ones for what lies between.

use std::fmt::Write as _;

use crate::emit::names::Names;
use crate::kernel::Type;

/// What a register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Word,
    Float,
    Truth,
    Address,
}

impl Class {
    const ALL: [Class; 4] = [Class::Word, Class::Float, Class::Truth, Class::Address];

    pub(super) fn of(ty: Type) -> Class {
        match ty {
            Type::F32 => Class::Float,
            Type::Word | Type::Id => Class::Word,
            Type::Bool => Class::Truth,
        }
    }

    pub(super) fn keyword(self) -> &'static str {
        match self {
            Class::Word => "b32",
            Class::Float => "f32",
            Class::Truth => "pred",
            Class::Address => "b64",
        }
    }

    fn letter(self) -> char {
        match self {
            Class::Word => 'r',
            Class::Float => 'f',
            Class::Truth => 'c',
            Class::Address => 'a',
        }
    }
}

/// The registers of a text, and the names of its symbols.
pub(super) struct Registers {
    names: Names,
    /// Named registers that are set once, of each class.
    named: [Vec<String>; 4],
    /// Numbered registers so far, of each class.
    numbered: [u32; 4],
}

/// Most characters of a line of declarations.
const WIDTH: usize = 100;

impl Registers {
    pub(super) fn new() -> Registers {
        Registers {
            names: Names::new(&RESERVED.split_whitespace().collect::<Vec<_>>()),
            named: Default::default(),
            numbered: [0; 4],
        }
    }

    /// A name that neither a symbol nor a register has.
    pub(super) fn unique(&mut self, wanted: &str) -> String {
        loop {
            let name = self.names.unique(wanted);
            if !is_numbered(&name) {
                return name;
            }
        }
    }

    /// A register that is set once, in the list at the top.
    pub(super) fn named(&mut self, class: Class, wanted: &str) -> String {
        let name = format!("%{}", self.unique(wanted));
        self.declare(class, &name);
        name
    }

    /// Lists a register whose name is known to be free.
    pub(super) fn declare(&mut self, class: Class, name: &str) {
        self.named[class as usize].push(name.into());
    }

    /// The next numbered register.
    pub(super) fn numbered(&mut self, class: Class) -> String {
        let count = &mut self.numbered[class as usize];
        *count += 1;
        format!("%{}{count}", class.letter())
    }

    /// The list at the top.
    pub(super) fn declarations(&self) -> String {
        let mut text = String::new();
        for class in Class::ALL {
            let start = format!("    .reg .{}", class.keyword());
            let mut line = start.clone();
            for name in &self.named[class as usize] {
                if line.len() + name.len() > WIDTH {
                    let _ = writeln!(text, "{};", line.trim_end_matches(','));
                    line.clone_from(&start);
                }
                let _ = write!(line, " {name},");
            }
            let count = self.numbered[class as usize];
            if count > 0 {
                let _ = write!(line, " %{}<{}>", class.letter(), count + 1);
            }
            if line != start {
                let _ = writeln!(text, "{};", line.trim_end_matches(','));
            }
        }
        text
    }
}

/// Whether a name is that of a numbered register.
fn is_numbered(name: &str) -> bool {
    let digits = name.strip_prefix(|c| Class::ALL.iter().any(|class| class.letter() == c));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Names of the text itself; names of special registers; words of the language.
const RESERVED: &str = "
    step lane number tid ntid laneid warpid nwarpid ctaid nctaid smid nsmid gridid clusterid nclusterid
    cluster_ctaid cluster_nctaid cluster_ctarank cluster_nctarank is_explicit_cluster lanemask_eq
    lanemask_le lanemask_lt lanemask_ge lanemask_gt clock clock_hi clock64 globaltimer globaltimer_lo
    globaltimer_hi total_smem_size aggr_smem_size dynamic_smem_size current_graph_exec abs activemask add
    addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev brkpt brx call
    clusterlaunchcontrol clz cnot copysign cos cp createpolicy cvt cvta discard div dp2a dp4a elect ex2 exit
    fence fma fns getctarank griddepcontrol isspacep istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa
    match max mbarrier membar min mma mov movmatrix mul mul24 multimem nanosleep neg not or pmevent popc
    prefetch prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg setp shf shfl shl shr sin
    slct sqrt st stackrestore stacksave stmatrix sub subc suld suq sured sust szext tanh tensormap testp tex
    tld4 trap txq vote wgmma wmma xor
";
