//! Scalar bodies, written as expressions.

use std::cell::RefCell;

use ds4_ir::scalar::{Scalar, ScalarOp, ScalarType, Scalars};
use ds4_ir::{Body, Value};

use super::Lowering;

/// Makes scalar nodes. Its methods take `&self`, so that expressions nest.
pub struct Math<'a>(RefCell<&'a mut Scalars>);

/// Declares a method per scalar operation.
macro_rules! operations {
    ($($name:ident($($arg:ident),*) = $op:ident;)*) => {$(
        pub fn $name(&self, $($arg: Scalar),*) -> Scalar {
            self.node(ScalarOp::$op, &[$($arg),*])
        }
    )*};
}

impl Math<'_> {
    fn node(&self, op: ScalarOp, args: &[Scalar]) -> Scalar {
        match self.0.borrow_mut().op(op, args) {
            Ok(x) => x,
            Err(fault) => panic!("invariant: the front end makes well-typed bodies: {fault}"),
        }
    }

    operations! {
        add(x, y) = Add;
        sub(x, y) = Sub;
        mul(x, y) = Mul;
        div(x, y) = Div;
        sqrt(x) = Sqrt;
        neg(x) = Neg;
        min(x, y) = Min;
        max(x, y) = Max;
        exp(x) = Exp;
        log1p(x) = Log1p;
        sin(x) = Sin;
        cos(x) = Cos;
        abs(x) = Abs;
        round_f16(x) = RoundF16;
        round_e4m3(x) = RoundE4m3;
        round_e2m1(x) = RoundE2m1;
        select(c, x, y) = SelectF32;
        float(i) = FloatOf;
        float_from_bits(i) = FromBits;
        to_bits(x) = ToBits;
        addi(i, j) = AddI;
        subi(i, j) = SubI;
        muli(i, j) = MulI;
        divi(i, n) = DivI;
        remi(i, n) = RemI;
        maxi(i, j) = MaxI;
        andi(i, j) = AndI;
        lt(x, y) = LtF;
        lti(i, j) = LtI;
        and(p, q) = And;
        not(p) = Not;
        id_where(p, i) = IdWhere;
        present(id) = Present;
    }

    /// A float constant.
    pub fn f(&self, value: f32) -> Scalar {
        self.0.borrow_mut().f32(value)
    }

    /// An integer constant.
    pub fn i(&self, value: i32) -> Scalar {
        self.0.borrow_mut().i32(value)
    }

    /// `div(1, add(1, exp(neg x)))`
    pub fn sigmoid(&self, x: Scalar) -> Scalar {
        self.div(self.f(1.0), self.add(self.f(1.0), self.exp(self.neg(x))))
    }

    /// `mul(x, sigmoid(x))`
    pub fn silu(&self, x: Scalar) -> Scalar {
        self.mul(x, self.sigmoid(x))
    }

    /// `log1p(exp(z))`, and `z` itself above 20.
    pub fn softplus(&self, z: Scalar) -> Scalar {
        self.select(self.lt(self.f(20.0), z), z, self.log1p(self.exp(z)))
    }
}

/// Parameter types of a body from a string: `f` f32, `i` i32, `d` id.
fn types(signature: &str) -> Vec<ScalarType> {
    let ty = |c| match c {
        'f' => ScalarType::F32,
        'i' => ScalarType::I32,
        'd' => ScalarType::Id,
        _ => panic!("invariant: signatures are made of f, i and d"),
    };
    signature.chars().map(ty).collect()
}

impl Lowering<'_> {
    /// The body with parameters of these types (`f` f32, `i` i32, `d` id).
    pub fn body(&mut self, signature: &str, expression: impl FnOnce(&Math<'_>, &[Scalar]) -> Scalar) -> Body {
        body(&mut self.b.scalars, signature, expression)
    }

    /// Maps a body over operands of one shape.
    pub fn map<const N: usize>(
        &mut self,
        signature: &str,
        args: [Value; N],
        expression: impl FnOnce(&Math<'_>, [Scalar; N]) -> Scalar,
    ) -> Value {
        let body =
            self.body(signature, |m, params| expression(m, params.try_into().expect("as many parameters as operands")));
        self.b.map(body, &args)
    }

    /// Maps a body over operands that broadcast to the shape of the first.
    pub fn map_like<const N: usize>(
        &mut self,
        signature: &str,
        args: [Value; N],
        expression: impl FnOnce(&Math<'_>, [Scalar; N]) -> Scalar,
    ) -> Value {
        let shape = self.b.dims_of(args[0]);
        let args = args.map(|v| self.b.broadcast(v, &shape));
        self.map(signature, args, expression)
    }
}

/// The body with parameters of these types.
pub fn body(scalars: &mut Scalars, signature: &str, expression: impl FnOnce(&Math<'_>, &[Scalar]) -> Scalar) -> Body {
    let types = types(signature);
    let params: Vec<Scalar> = types.iter().enumerate().map(|(i, &ty)| scalars.param(i as u32, ty)).collect();
    let result = expression(&Math(RefCell::new(scalars)), &params);
    match scalars.body(&types, result) {
        Ok(body) => body,
        Err(fault) => panic!("invariant: the front end makes well-typed bodies: {fault}"),
    }
}
