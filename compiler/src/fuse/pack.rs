//! Regions side by side: how many launches they take.

use std::collections::BTreeSet;

use super::cost::{Cost, Scene};
use super::regions::{Planned, Root};

/// A launch that takes regions as long as buffers and workgroup memory suffice.
#[derive(Default)]
struct Room {
    bound: BTreeSet<Root>,
    arrays: [u32; 3],
    /// The regions, as places in the list.
    regions: Vec<usize>,
}

impl Room {
    /// The arrays with those of a region, which runs in other workgroups of the same kernel.
    fn arrays_with(&self, region: &Planned) -> [u32; 3] {
        std::array::from_fn(|pool| self.arrays[pool].max(region.cost.arrays[pool]))
    }

    fn takes(&self, scene: &Scene<'_>, region: &Planned) -> bool {
        let words = self.arrays_with(region).iter().fold(0u32, |sum, &n| sum.saturating_add(n));
        let fits = words.saturating_mul(4) <= scene.profile.workgroup_bytes;
        fits && self.bound.union(&region.arguments).count() <= scene.profile.arguments as usize
    }

    fn add(&mut self, place: usize, region: &Planned) {
        self.arrays = self.arrays_with(region);
        self.bound.extend(region.arguments.iter().copied());
        self.regions.push(place);
    }
}

/// Regions into as few launches as buffers and workgroup memory allow, each into the first that takes it, in the order of what they
/// compute.
fn rooms(scene: &Scene<'_>, regions: &[&Planned]) -> Vec<Room> {
    let mut order: Vec<usize> = (0..regions.len()).collect();
    order.sort_by_key(|&place| regions[place].values.last().map(|&v| (scene.order[v.0 as usize], v)));
    let mut rooms: Vec<Room> = Vec::new();
    for place in order {
        let region = regions[place];
        match rooms.iter_mut().find(|room| room.takes(scene, region)) {
            Some(room) => room.add(place, region),
            None => {
                let mut room = Room::default();
                room.add(place, region);
                rooms.push(room);
            }
        }
    }
    rooms
}

/// The launches that regions side by side take.
pub fn pack(scene: &Scene<'_>, regions: Vec<Planned>) -> Vec<Vec<Planned>> {
    let rooms = rooms(scene, &regions.iter().collect::<Vec<_>>());
    let mut regions: Vec<Option<Planned>> = regions.into_iter().map(Some).collect();
    let take = |room: Room| room.regions.into_iter().filter_map(|place| regions[place].take()).collect();
    rooms.into_iter().map(take).collect()
}

/// Microseconds of these launches.
pub fn packed_time(scene: &Scene<'_>, regions: &[&Planned]) -> f64 {
    let time = |room: Room| {
        let costs: Vec<&Cost> = room.regions.iter().map(|&place| &regions[place].cost).collect();
        scene.launch_time(costs.into_iter())
    };
    rooms(scene, regions).into_iter().map(time).sum()
}
