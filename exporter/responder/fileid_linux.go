package responder

import (
	"io/fs"
	"syscall"
)

// fileID tells a file from one that has taken its place, and an edit that keeps time and
// size from none: the inode and the time of its last change, which nobody can set.
type fileID struct {
	inode   uint64
	changed syscall.Timespec
}

func idOf(info fs.FileInfo) fileID {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{inode: s.Ino, changed: s.Ctim}
}
