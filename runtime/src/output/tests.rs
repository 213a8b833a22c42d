use std::path::Path;

use super::crc::crc32;
use super::*;

fn listing(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn crc_of_the_check_string() {
    assert_eq!(crc32([b"1234".as_slice(), b"56789"]), 0xcbf4_3926);
    assert_eq!(crc32([]), 0);
}

#[test]
fn headers_are_numpy_1_0() {
    for shape in [&[][..], &[5], &[0, 129280], &[3, 4, 5]] {
        let header = npy_header(Element::F32, shape);
        assert!(header.starts_with(b"\x93NUMPY\x01\x00"));
        assert!(header.len().is_multiple_of(64) && header.ends_with(b"\n"));
        let length = u16::from_le_bytes([header[8], header[9]]);
        assert_eq!(usize::from(length) + 10, header.len());
    }
    let text = |element, shape: &[usize]| {
        let header = npy_header(element, shape);
        String::from_utf8(header[10..].to_vec()).unwrap().trim_end().to_string()
    };
    assert_eq!(text(Element::F32, &[3, 4]), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
    assert_eq!(text(Element::I32, &[7]), "{'descr': '<i4', 'fortran_order': False, 'shape': (7,), }");
    assert_eq!(text(Element::I32, &[]), "{'descr': '<i4', 'fortran_order': False, 'shape': (), }");
    let longest = npy_header(Element::F32, &[usize::MAX, 129280]);
    assert_eq!(longest.len(), npy_header(Element::F32, &[0, 129280]).len());
}

#[test]
fn rows_are_appended_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logits.npy");
    let mut rows = NpyRows::create(&path, 2).unwrap();
    rows.push(&[1.0, 2.0, 3.0, 4.0]).unwrap();
    rows.push(&[5.0, f32::NAN]).unwrap();
    assert_eq!(rows.rows(), 3);
    assert!(!path.exists());
    rows.finish().unwrap();
    assert_eq!(listing(folder.path()), ["logits.npy"]);
    let bytes = std::fs::read(&path).unwrap();
    let header = npy_header(Element::F32, &[3, 2]);
    assert!(bytes.starts_with(&header));
    assert_eq!(bytes.len(), header.len() + 24);
    assert_eq!(bytes[header.len() + 8..][..4], 3.0f32.to_le_bytes());
}

#[test]
fn an_unfinished_file_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logits.npy");
    std::fs::write(&path, "old").unwrap();
    let mut rows = NpyRows::create(&path, 1).unwrap();
    rows.push(&[1.0]).unwrap();
    assert_eq!(listing(folder.path()).len(), 2);
    drop(rows);
    assert_eq!(listing(folder.path()), ["logits.npy"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
}

#[test]
fn a_folder_that_is_not_there_is_a_diagnostic() {
    let error = NpyRows::create(Path::new("absent/logits.npy"), 1).unwrap_err();
    insta::assert_snapshot!(error);
    let folder = tempfile::tempdir().unwrap();
    assert!(Partial::create(folder.path()).is_err());
}

#[test]
fn an_archive_has_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taps.npz");
    let data: Vec<u8> = [1.0f32, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    write_npz(&path, &[("layer.0.route.ids", Element::I32, &[0, 2], &[]), ("é", Element::F32, &[2], &data)]).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(listing(folder.path()), ["taps.npz"]);
    // The same file as Python's zipfile and numpy.load were seen to read.
    insta::assert_snapshot!(format!("{} bytes, crc {:08x}", bytes.len(), crc32([bytes.as_slice()])));
}
