//! Names that follow from the commit's own: whoever submits it again, in
//! whatever process, names the same jobs.

use sha2::{Digest as _, Sha256};

/// The id of a commit's job, by its number. It looks like the commit's: a ULID
/// keeps its time, so that ids still sort by when they were made.
pub(super) fn job_id(commit: &str, number: usize) -> String {
    let digest = Sha256::digest(format!("{commit}/{number}"));
    let mut bytes: [u8; 16] = digest[..16].try_into().expect("a digest has 32 bytes");
    match ulid::Ulid::from_string(commit) {
        Ok(commit) => {
            bytes[..6].copy_from_slice(&commit.to_bytes()[..6]);
            ulid::Ulid::from_bytes(bytes).to_string()
        }
        Err(_) => uuid::Builder::from_custom_bytes(bytes).into_uuid().hyphenated().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::new_job::check_id;

    #[test]
    fn ids_follow_from_the_commit_and_look_like_it() {
        let sortable = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let random = "67e55044-10b1-426f-9247-bb680e5fe0c8";
        for commit in [sortable, random] {
            let ids: Vec<String> = (0..3).map(|number| job_id(commit, number)).collect();
            assert_eq!(ids, (0..3).map(|number| job_id(commit, number)).collect::<Vec<_>>());
            assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != commit);
            for id in &ids {
                assert_eq!(check_id(id).unwrap(), *id);
                assert_eq!(id.len(), commit.len());
            }
        }
        assert_eq!(job_id(sortable, 0)[..10], sortable[..10], "the time is the commit's");
    }
}
