//! Writing the header: a birth, a change, a copy that is written again; and the locks under which that is done.

use std::sync::Arc;

use pellucid::header::{Header, Second, COPY_BYTES, COPY_OFFSETS, REGION_BYTES};
use pellucid::keys::ContainerKeys;
use pellucid::log_sector;
use pellucid::sector::{SectorZero, Wear, SECTOR_BYTES, WEAR_LOG_OFFSET, WEAR_PAGES_OFFSET};
use pellucid::{Dek, Error};
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;

use super::wear::RESERVE_MOST;
use super::{Container, Phase, HEAD_BYTES};
use crate::log_archive;
use crate::lower::Lower;

impl Container {
    /// Makes the container: writes and syncs the header region without sector 0, then sector 0. The
    /// first page follows.
    ///
    /// # Errors
    /// A code; the file is then still empty or an unfinished birth.
    pub fn give_birth(&self, page_size: u32) -> Outcome<()> {
        let lower = self.lower()?;
        let (header, keys) = {
            let state = self.state.borrow();
            let (Phase::Unborn(birth), Some(keys)) = (&state.phase, &state.keys) else {
                return Ok(());
            };
            let header = birth.header(page_size);
            (header.map_err(|error| self.report(&error))?, keys.clone())
        };
        let encoded = header.encode(keys.header_key()).map_err(|error| self.report(&error))?;
        let mut region = vec![0; REGION_BYTES as usize];
        let sector = SectorZero::Sealed { file_id: header.file_id }.encode(page_size);
        region[..SECTOR_BYTES].copy_from_slice(&sector);
        let wear = Wear { generation: header.generation, reserved: RESERVE_MOST };
        let mut put = |offset: u64, bytes: &[u8]| {
            region[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        };
        put(WEAR_PAGES_OFFSET, &wear.encode(keys.header_key(), WEAR_PAGES_OFFSET));
        put(WEAR_LOG_OFFSET, &log_sector::encode_first(&header, wear, keys.header_key()));
        for offset in COPY_OFFSETS {
            region[offset as usize..offset as usize + COPY_BYTES].copy_from_slice(&encoded[..]);
        }
        crate::seal_request::remember(&header, &self.path);
        // Sector 0 last: without it the file counts as empty, so a birth can be interrupted
        // anywhere.
        lower.write(&region[SECTOR_BYTES..], SECTOR_BYTES as u64)?;
        lower.sync(ffi::SYNC_NORMAL)?;
        lower.write(&region[..SECTOR_BYTES], 0)?;
        lower.sync(ffi::SYNC_NORMAL)?;
        self.credentials.remember(&encoded, &keys);
        self.expected.put_if_writable(&self.path, &header);
        self.adopt(header, keys, &encoded[..HEAD_BYTES]);
        Ok(())
    }

    fn adopt(&self, header: Header, keys: Arc<ContainerKeys>, head: &[u8]) {
        let mut state = self.state.borrow_mut();
        self.forget_log_sector();
        state.phase = Phase::Sealed;
        state.keys = Some(keys);
        state.header = Some(header);
        state.head.copy_from_slice(head);
        state.mend = false;
        state.behind = false;
        state.forbidden = None;
        drop(state);
        self.announce();
    }

    /// Changes the header and keeps the DEK. The caller holds the locks that a header change needs.
    ///
    /// # Errors
    /// As [`Container::write_header`].
    pub fn change_header(&self, change: impl FnOnce(&mut Header)) -> Outcome<()> {
        let mut header = self.header().ok_or(Code(ffi::IOERR))?;
        change(&mut header);
        let keys = self.keys()?;
        self.write_header(header, keys.dek().ok_or(Code(ffi::IOERR))?)
    }

    /// Writes `header` as the next one, under `dek`: copy 0, sync, copy 1, sync. The caller holds
    /// the locks that a header change needs.
    ///
    /// If copy 1 differs from copy 0, it is first made equal. While copy 0 is being written, copy 1
    /// is the only whole one and has to be the newest.
    ///
    /// # Errors
    /// A code; one copy is then whole and the newest.
    pub fn write_header(&self, mut header: Header, dek: &Dek) -> Outcome<()> {
        let lower = self.lower()?;
        let typed = |error: Error| self.report(&error);
        self.refuse_stale(lower)?;
        self.bring_up_second_copy(lower)?;
        self.name_in_sector_zero(lower)?;
        self.renew_log_sector(lower)?;
        header.sequence += 1;
        let keys = Arc::new(ContainerKeys::new(&header, dek).map_err(typed)?);
        let encoded = header.encode(keys.header_key()).map_err(typed)?;
        let rekeyed = self.keys()?.dek() != Some(dek);
        self.keep_in_archive(&header, &encoded, rekeyed)?;
        if let Err(code) = lower.write(&encoded[..], COPY_OFFSETS[0]) {
            // Copy 0 may be half written, so copy 1 is the newest whole one.
            self.state.borrow_mut().mend = true;
            return Err(code);
        }
        // Every connection now reads copy 0, synced or not, so this one uses it too.
        self.credentials.remember(&encoded, &keys);
        self.adopt(header, keys.clone(), &encoded[..HEAD_BYTES]);
        self.transaction.pool().drop_reserved();
        self.state.borrow_mut().behind = true;
        lower.sync(ffi::SYNC_NORMAL)?;
        lower.write(&encoded[..], COPY_OFFSETS[1])?;
        lower.sync(ffi::SYNC_NORMAL)?;
        self.state.borrow_mut().behind = false;
        if rekeyed {
            self.begin_wear(lower, &keys)?;
        }
        self.name_in_sector_zero(lower)
    }

    /// Gives the log archive the next header first, by which the log opens when this file is gone. Where the archive cannot be
    /// written, a header that opens by other keys or protectors is not written either.
    fn keep_in_archive(
        &self,
        next: &Header,
        encoded: &[u8; COPY_BYTES],
        rekeyed: bool,
    ) -> Outcome<()> {
        if !next.second.as_ref().is_some_and(Second::keeps_log) {
            return Ok(());
        }
        let Err(error) = log_archive::keep_header(&self.path, encoded) else { return Ok(()) };
        let now = self.header();
        let opens_alike = now.is_some_and(|now| now.protectors == next.protectors && !rekeyed);
        if opens_alike {
            // The next full backup under the chain writes it.
            self.note(
                ffi::OK,
                &format!("the log archive has an older copy of the header: {error}"),
            );
            return Ok(());
        }
        Err(self.report(&error))
    }

    /// Refuses to change a header that is no longer the one on disk: a newer header may have keys
    /// that would be lost.
    fn refuse_stale(&self, lower: Lower) -> Outcome<()> {
        let mut head = [0; HEAD_BYTES];
        lower.read(&mut head, COPY_OFFSETS[0])?;
        let state = self.state.borrow();
        // Copy 0 may be anything after this connection's failed write.
        if state.mend || head == state.head {
            return Ok(());
        }
        self.note(ffi::IOERR, "the header changed since it was read, and is left as it is");
        Err(Code(ffi::IOERR))
    }

    /// Writes the container's new file id into sector 0, once both header copies name it. A scan
    /// that changes the file id needs this. Until then the header names the older id that sector 0
    /// may have, so this comes before every header change that makes the header forget that id.
    fn name_in_sector_zero(&self, lower: Lower) -> Outcome<()> {
        let Some(header) = self.header().filter(|header| header.scan.older_id.is_some()) else {
            return Ok(());
        };
        let mut sector = [0; SECTOR_BYTES];
        lower.read(&mut sector, 0)?;
        let named = SectorZero::Sealed { file_id: header.file_id }.encode(header.page_size);
        if sector == named {
            return Ok(());
        }
        lower.write(&named, 0)?;
        lower.sync(ffi::SYNC_NORMAL)
    }

    /// Makes header copy 1 equal to copy 0. They differ when a header change was interrupted
    /// between the two writes.
    ///
    /// # Errors
    /// A code.
    pub fn bring_up_second_copy(&self, lower: Lower) -> Outcome<()> {
        let (header, keys) = {
            let state = self.state.borrow();
            match (&state.header, &state.keys) {
                (Some(_), Some(_)) if !state.behind => return Ok(()),
                (Some(header), Some(keys)) => (header.clone(), keys.clone()),
                _ => return Err(Code(ffi::IOERR)),
            }
        };
        // The process that wrote copy 0 may have been killed before its sync; then only copy 1 is
        // on disk.
        lower.sync(ffi::SYNC_NORMAL)?;
        let encoded = header.encode(keys.header_key()).map_err(|error| self.report(&error))?;
        lower.write(&encoded[..], COPY_OFFSETS[1])?;
        lower.sync(ffi::SYNC_NORMAL)?;
        self.state.borrow_mut().behind = false;
        Ok(())
    }

    /// Writes the damaged header copy 0 again. The caller holds the locks that a header change
    /// needs.
    ///
    /// # Errors
    /// A code.
    pub fn mend_header(&self) -> Outcome<()> {
        let due = self.state.borrow().mend;
        if !due {
            return Ok(());
        }
        self.note(ffi::OK, "writing the damaged header copy again");
        self.change_header(|_| ())
    }

    /// Runs `change` if this connection may write the header: under EXCLUSIVE, or with the WAL's
    /// write and checkpoint locks together. If it holds one of those two, it takes the other for
    /// the change.
    ///
    /// Returns false if the locks cannot be had now. The change of a generation can wait, because
    /// the generation changes at 2^30 writes and the limit is 2^32.
    ///
    /// # Errors
    /// A code.
    pub fn with_header_locks(
        &self,
        lower: Lower,
        change: impl FnOnce() -> Outcome<()>,
    ) -> Outcome<bool> {
        if self.transaction.lock_level() == ffi::LOCK_EXCLUSIVE {
            change()?;
            return Ok(true);
        }
        let held = self.transaction.shm_exclusive();
        let has = |lock: i32| held & (1 << lock) != 0;
        let missing = match (has(ffi::WAL_WRITE_LOCK), has(ffi::WAL_CKPT_LOCK)) {
            (true, true) => None,
            (true, false) => Some(ffi::WAL_CKPT_LOCK),
            (false, true) => Some(ffi::WAL_WRITE_LOCK),
            (false, false) => return Ok(false),
        };
        let Some(missing) = missing else {
            change()?;
            return Ok(true);
        };
        match lower.shm_lock(missing, 1, ffi::SHM_LOCK | ffi::SHM_EXCLUSIVE) {
            ffi::OK => {}
            ffi::BUSY => return Ok(false),
            code => return Err(Code(code)),
        }
        let changed = change();
        let given_back = lower.shm_lock(missing, 1, ffi::SHM_UNLOCK | ffi::SHM_EXCLUSIVE);
        changed?;
        Code::check(given_back)?;
        Ok(true)
    }
}
