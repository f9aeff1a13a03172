//! BACKUP and RESTORE.

use pellucid_tsql::ast::{
    Backup, BackupOption, Compression, Device, Encryptor, FileSelection, Inspect, MediaOption,
    Restore, RestoreOption, RestoreSource, StopMark,
};

use super::{put, List, Listed, Maybe, One, Print, Printer};

impl Print for Backup {
    fn print(&self, to: &mut Printer) {
        put!(to, "BACKUP ", One(self.kind), " ", self.database, Listed(" ", &self.files, ""));
        put!(to, " TO ", List(&self.devices));
        for mirror in &self.mirrors {
            put!(to, " MIRROR TO ", List(mirror));
        }
        put!(to, Listed(" WITH ", &self.options, ""));
    }
}

impl Print for FileSelection {
    fn print(&self, to: &mut Printer) {
        match self {
            FileSelection::File(name) => put!(to, "FILE = ", name),
            FileSelection::Filegroup(name) => put!(to, "FILEGROUP = ", name),
            FileSelection::ReadWriteFilegroups => put!(to, "READ_WRITE_FILEGROUPS"),
            FileSelection::Page(pages) => put!(to, "PAGE = ", pages),
        }
    }
}

impl Print for Device {
    fn print(&self, to: &mut Printer) {
        match self {
            Device::Logical(name) => name.print(to),
            Device::Physical { kind, path } => put!(to, One(*kind), " = ", path),
        }
    }
}

impl Print for BackupOption {
    fn print(&self, to: &mut Printer) {
        match self {
            BackupOption::Flag(flag) => put!(to, One(*flag)),
            BackupOption::Media(option) => option.print(to),
            BackupOption::Compression(how) => put!(to, "COMPRESSION", Maybe(" ", how)),
            BackupOption::Encryption { algorithm, encryptor } => {
                let (kind, name) = match encryptor {
                    Encryptor::Certificate(name) => ("SERVER CERTIFICATE = ", name),
                    Encryptor::AsymmetricKey(name) => ("SERVER ASYMMETRIC KEY = ", name),
                };
                put!(to, "ENCRYPTION (ALGORITHM = ", One(*algorithm), ", ", kind, name, ")");
            }
            BackupOption::Name(text) => put!(to, "NAME = ", text),
            BackupOption::Description(text) => put!(to, "DESCRIPTION = ", text),
            BackupOption::MediaDescription(text) => put!(to, "MEDIADESCRIPTION = ", text),
            BackupOption::ExpireDate(date) => put!(to, "EXPIREDATE = ", date),
            BackupOption::RetainDays(days) => put!(to, "RETAINDAYS = ", days),
            BackupOption::Standby(path) => put!(to, "STANDBY = ", path),
        }
    }
}

impl Print for Compression {
    fn print(&self, to: &mut Printer) {
        let level = self.level.map(One);
        put!(to, "(ALGORITHM = ", One(self.algorithm), Maybe(", LEVEL = ", &level), ")");
    }
}

impl Print for MediaOption {
    fn print(&self, to: &mut Printer) {
        match self {
            MediaOption::Flag(flag) => put!(to, One(*flag)),
            MediaOption::BlockSize(bytes) => put!(to, "BLOCKSIZE = ", bytes),
            MediaOption::BufferCount(count) => put!(to, "BUFFERCOUNT = ", count),
            MediaOption::MaxTransferSize(bytes) => put!(to, "MAXTRANSFERSIZE = ", bytes),
            MediaOption::Stats(percent) => put!(to, "STATS", Maybe(" = ", percent)),
            MediaOption::MediaName(name) => put!(to, "MEDIANAME = ", name),
            MediaOption::MediaPassword(secret) => put!(to, "MEDIAPASSWORD = ", secret),
            MediaOption::Password(secret) => put!(to, "PASSWORD = ", secret),
            MediaOption::Credential(name) => put!(to, "CREDENTIAL = ", name),
        }
    }
}

impl Print for Restore {
    fn print(&self, to: &mut Printer) {
        put!(to, "RESTORE ", One(self.kind), " ", self.database, Listed(" ", &self.files, ""));
        match &self.source {
            RestoreSource::Nothing => {}
            RestoreSource::Devices(devices) => put!(to, " FROM ", List(devices)),
            RestoreSource::Snapshot(name) => put!(to, " FROM DATABASE_SNAPSHOT = ", name),
        }
        put!(to, Listed(" WITH ", &self.options, ""));
    }
}

impl Print for Inspect {
    fn print(&self, to: &mut Printer) {
        put!(to, "RESTORE ", One(self.kind), " FROM ", List(&self.devices));
        put!(to, Listed(" WITH ", &self.options, ""));
    }
}

impl Print for RestoreOption {
    fn print(&self, to: &mut Printer) {
        match self {
            RestoreOption::Flag(flag) => put!(to, One(*flag)),
            RestoreOption::Media(option) => option.print(to),
            RestoreOption::Standby(path) => put!(to, "STANDBY = ", path),
            RestoreOption::Move { logical, path } => put!(to, "MOVE ", logical, " TO ", path),
            RestoreOption::File(position) => put!(to, "FILE = ", position),
            RestoreOption::StopAt(time) => put!(to, "STOPAT = ", time),
            RestoreOption::StopAtMark(mark) => put!(to, "STOPATMARK = ", mark),
            RestoreOption::StopBeforeMark(mark) => put!(to, "STOPBEFOREMARK = ", mark),
        }
    }
}

impl Print for StopMark {
    fn print(&self, to: &mut Printer) {
        put!(to, self.mark, Maybe(" AFTER ", &self.after));
    }
}
