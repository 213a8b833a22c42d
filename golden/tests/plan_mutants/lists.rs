//! Changes of launch lists.

use ds4_golden::proofs::trials::Words;
use ds4_ir::{Op, Value};

use super::edit::{Launch, Mutant, insert, pick};
use super::{Kind, kind};

pub const KINDS: &[Kind] = &[
    kind("value dropped", dropped),
    kind("last value dropped", last_dropped),
    kind("value added", added),
    kind("value moved to another region", |m, e, w| moved(m, e, w, |w, _, n| pick(w, n))),
    kind("value moved a launch earlier", |m, e, w| moved(m, e, w, |_, at, _| at.wrapping_sub(1))),
    kind("value moved a launch later", |m, e, w| moved(m, e, w, |_, at, _| at + 1)),
    kind("launches swapped", swapped),
    kind("neighbouring launches swapped", swapped_neighbours),
    kind("region moved to another launch", |m, e, w| region_moved(m, e, w, |w, _, n| pick(w, n))),
    kind("region moved a launch earlier", |m, e, w| region_moved(m, e, w, |_, at, _| at.wrapping_sub(1))),
    kind("region moved a launch later", |m, e, w| region_moved(m, e, w, |_, at, _| at + 1)),
    kind("region in a launch of its own", apart),
    kind("launches joined", joined),
    kind("region cut in two", cut),
    kind("duplicate removed", duplicate_removed),
    kind("duplicate added", duplicate_added),
    kind("tile changed", tile),
    kind("tiles dropped", |m, e, w| {
        in_region(m, e, w, |region, _| Some(std::mem::take(&mut region.1).len().to_string()))
    }),
    kind("region dropped", region_dropped),
    kind("launch dropped", launch_dropped),
    kind("launch repeated", repeated),
    kind("values of a region out of order", |m, e, w| {
        in_region(m, e, w, |region, w| {
            let n = region.0.len();
            let (a, b) = (pick(w, n), pick(w, n));
            region.0.swap(a, b);
            Some(format!("{a} and {b}"))
        })
    }),
    kind("write moved before a reader", write_moved),
    kind("device of a launch", |m, e, w| {
        in_launch(m, e, w, |launch, _| {
            launch.row.device.0 = 1;
            Some(String::new())
        })
    }),
];

fn in_launch(
    m: &mut Mutant,
    entry: usize,
    words: &mut Words,
    change: impl Fn(&mut Launch, &mut Words) -> Option<String>,
) -> Option<String> {
    let mut launches = m.launches(entry);
    let at = pick(words, launches.len());
    let what = change(&mut launches[at], words)?;
    m.put(entry, &launches);
    Some(format!("launch {at}: {what}"))
}

fn in_region(
    m: &mut Mutant,
    entry: usize,
    words: &mut Words,
    change: impl Fn(&mut super::edit::Region, &mut Words) -> Option<String>,
) -> Option<String> {
    in_launch(m, entry, words, |launch, words| {
        let at = pick(words, launch.regions.len());
        Some(format!("region {at}: {}", change(&mut launch.regions[at], words)?))
    })
}

fn dropped(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    in_region(m, entry, words, |region, words| {
        let at = pick(words, region.0.len());
        Some(format!("{}", region.0.remove(at)))
    })
}

fn last_dropped(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    in_region(m, entry, words, |region, _| (region.0.len() > 1).then(|| region.0.pop())?.map(|v| v.to_string()))
}

fn added(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let v = Value(pick(words, m.graph.value_op.len()) as u32);
    in_region(m, entry, words, |region, _| {
        insert(region, v);
        Some(v.to_string())
    })
}

/// The places that a value or region is moved to, from where it is and how many there are.
type To = fn(&mut Words, usize, usize) -> usize;

fn moved(m: &mut Mutant, entry: usize, words: &mut Words, to: To) -> Option<String> {
    let mut launches = m.launches(entry);
    let (launch, region) = Mutant::region(&launches, words);
    let target = to(words, launch, launches.len());
    let target_regions = launches.get(target)?.regions.len();
    let target_region = pick(words, target_regions);
    let values = &mut launches[launch].regions[region].0;
    let at = pick(words, values.len());
    let v = values.remove(at);
    if values.is_empty() {
        launches[launch].regions.remove(region);
    }
    insert(launches.get_mut(target)?.regions.get_mut(target_region)?, v);
    launches.retain(|launch| !launch.regions.is_empty());
    m.put(entry, &launches);
    Some(format!("{v} from {launch}.{region} to {target}.{target_region}"))
}

fn swapped(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let mut launches = m.launches(entry);
    let (a, b) = (pick(words, launches.len()), pick(words, launches.len()));
    launches.swap(a, b);
    m.put(entry, &launches);
    Some(format!("{a} and {b}"))
}

fn swapped_neighbours(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let mut launches = m.launches(entry);
    let at = pick(words, launches.len() - 1);
    launches.swap(at, at + 1);
    m.put(entry, &launches);
    Some(format!("{at} and {}", at + 1))
}

fn region_moved(m: &mut Mutant, entry: usize, words: &mut Words, to: To) -> Option<String> {
    let mut launches = m.launches(entry);
    let (launch, region) = Mutant::region(&launches, words);
    let target = to(words, launch, launches.len());
    launches.get(target)?;
    let moved = launches[launch].regions.remove(region);
    launches[target].regions.push(moved);
    launches.retain(|launch| !launch.regions.is_empty());
    m.put(entry, &launches);
    Some(format!("{launch}.{region} to {target}"))
}

fn apart(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let mut launches = m.launches(entry);
    let (launch, region) = Mutant::region(&launches, words);
    if launches[launch].regions.len() < 2 {
        return None;
    }
    let alone = launches[launch].regions.remove(region);
    let row = launches[launch].row;
    let at = pick(words, launches.len());
    launches.insert(at, Launch { regions: vec![alone], row });
    m.put(entry, &launches);
    Some(format!("{launch}.{region} in front of {at}"))
}

fn joined(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let mut launches = m.launches(entry);
    let at = pick(words, launches.len() - 1);
    let next = launches.remove(at + 1);
    launches[at].regions.extend(next.regions);
    m.put(entry, &launches);
    Some(format!("{at} and {}", at + 1))
}

/// The first values of a region as a region of their own in the launch before.
fn cut(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let mut launches = m.launches(entry);
    let (launch, region) = Mutant::region(&launches, words);
    let values = &mut launches[launch].regions[region].0;
    if values.len() < 2 {
        return None;
    }
    let at = 1 + pick(words, values.len() - 1);
    let rest = values.split_off(at);
    let first = std::mem::replace(values, rest);
    let row = launches[launch].row;
    let rank = m.graph.view().dims_of(*first.last()?).len();
    launches.insert(launch, Launch { regions: vec![(first, vec![0; rank])], row });
    m.put(entry, &launches);
    Some(format!("{launch}.{region} behind {at} values"))
}

/// A value that several regions list, with their places.
fn duplicate(launches: &[Launch], words: &mut Words) -> Option<(Value, usize, usize)> {
    let all = || {
        launches.iter().enumerate().flat_map(|(l, launch)| {
            launch.regions.iter().enumerate().flat_map(move |(r, region)| region.0.iter().map(move |&v| (v, l, r)))
        })
    };
    let several: Vec<_> = all().filter(|&(v, ..)| all().filter(|&(other, ..)| other == v).count() > 1).collect();
    several.get(pick(words, several.len())).copied()
}

fn duplicate_removed(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let mut launches = m.launches(entry);
    let (v, launch, region) = duplicate(&launches, words)?;
    launches[launch].regions[region].0.retain(|&other| other != v);
    launches[launch].regions.retain(|region| !region.0.is_empty());
    launches.retain(|launch| !launch.regions.is_empty());
    m.put(entry, &launches);
    Some(format!("{v} from {launch}.{region}"))
}

/// A value that a region reads is computed there again.
fn duplicate_added(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let graph = m.graph.clone();
    let graph = graph.view();
    in_region(m, entry, words, |region, words| {
        let v = region.0[pick(words, region.0.len())];
        let args = graph.args(v);
        let mut at = *args.get(pick(words, args.len()))?;
        while graph.op(at).is_view() {
            at = graph.args(at)[0];
        }
        insert(region, at);
        Some(format!("{at} for {v}"))
    })
}

fn tile(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    in_region(m, entry, words, |region, words| {
        let n = region.1.len();
        let tile = region.1.get_mut(pick(words, n))?;
        let was = *tile;
        *tile = [0, 1, 2, 3, was * 2, was + 1, was / 2, 32, 64][pick(words, 9)];
        Some(format!("{was} to {tile}"))
    })
}

fn region_dropped(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    in_launch(m, entry, words, |launch, words| {
        let at = pick(words, launch.regions.len());
        launch.regions.remove(at);
        Some(format!("region {at}"))
    })
}

fn launch_dropped(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let mut launches = m.launches(entry);
    let at = pick(words, launches.len());
    launches.remove(at);
    m.put(entry, &launches);
    Some(at.to_string())
}

fn repeated(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let mut launches = m.launches(entry);
    let (from, to) = (pick(words, launches.len()), pick(words, launches.len()));
    launches.insert(to, launches[from].clone());
    m.put(entry, &launches);
    Some(format!("{from} in front of {to}"))
}

/// A write goes to a launch that reads what it replaces, or in front of it.
fn write_moved(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let mut launches = m.launches(entry);
    let graph = m.graph.view();
    let is_write = |v: &Value| graph.op(*v) == Op::Write;
    let places: Vec<(usize, usize)> = launches
        .iter()
        .enumerate()
        .flat_map(|(l, launch)| (0..launch.regions.len()).map(move |r| (l, r)))
        .filter(|&(l, r)| launches[l].regions[r].0.iter().any(is_write))
        .collect();
    let &(launch, region) = places.get(pick(words, places.len()))?;
    let back = 1 + pick(words, launch.max(1));
    let target = launch.checked_sub(back)?;
    let moved = launches[launch].regions.remove(region);
    launches[target].regions.push(moved);
    launches.retain(|launch| !launch.regions.is_empty());
    m.put(entry, &launches);
    Some(format!("{launch}.{region} to {target}"))
}
