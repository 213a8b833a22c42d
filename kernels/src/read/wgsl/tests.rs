//! Texts that no printer writes are refused, and say why.
