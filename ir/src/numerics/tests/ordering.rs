use super::{same, specials};
use crate::numerics::order::plain::key;
use crate::numerics::{amax, canonical, max, min, outranks, rank, relu};
use std::cmp::Ordering;

#[test]
fn minimum_and_maximum_follow_the_total_order() {
    for x in specials() {
        for y in specials() {
            let nan = x.is_nan() || y.is_nan();
            let less = x.total_cmp(&y) == Ordering::Less;
            let (low, high) = if less { (x, y) } else { (y, x) };
            let wanted = |v: f32| if nan { 0x7fc0_0000 } else { v.to_bits() };
            assert_eq!(min(x, y).to_bits(), wanted(low), "min({x:e}, {y:e})");
            assert_eq!(max(x, y).to_bits(), wanted(high), "max({x:e}, {y:e})");
            assert!(nan || (key(x) < key(y)) == less);
        }
    }
}

#[test]
fn maximum_does_not_depend_on_grouping() {
    for x in specials() {
        for y in specials() {
            for z in specials() {
                assert_eq!(max(max(x, y), z).to_bits(), max(x, max(z, y)).to_bits());
            }
        }
    }
}

#[test]
fn relu_and_amax() {
    for x in specials() {
        assert_eq!(relu(x).to_bits(), max(x, 0.0).to_bits());
        assert_eq!(amax(0.0, x).to_bits(), canonical(x.abs()).to_bits());
        assert_eq!(amax(f32::NAN, x).to_bits(), 0x7fc0_0000);
    }
    assert_eq!(relu(-0.0).to_bits(), 0);
}

#[test]
fn canonical_changes_nan_only() {
    for x in specials() {
        let wanted = if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() };
        assert_eq!(canonical(x).to_bits(), wanted);
    }
}

#[test]
fn ranking() {
    for x in specials() {
        for y in specials() {
            let (equal, less) = match (x.is_nan(), y.is_nan()) {
                (false, false) => (x == y, x < y),
                (left, right) => (left && right, left && !right),
            };
            assert_eq!(rank(x) == rank(y), equal, "{x:e} {y:e}");
            assert_eq!(rank(x) < rank(y), less, "{x:e} {y:e}");
            assert_eq!(outranks(y, 7, x, 3), less);
            assert_eq!(outranks(x, 3, y, 7), !less);
            assert_eq!(outranks(x, u32::MAX, y, 0), !less && !equal);
        }
    }
    assert!(!same(-0.0, 0.0) && rank(-0.0) == rank(0.0));
}
