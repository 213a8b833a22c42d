//! The picture as a page.

use super::Picture;

/// The picture as HTML.
pub fn page(picture: &Picture<'_>) -> String {
    picture.svg()
}
