package vfs

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// syncFile uses fdatasync: it writes the size too when that changed, but not the times.
func syncFile(f *os.File) error {
	if err := control(f, unix.Fdatasync); err != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

func statfs(dir string) (st unix.Statfs_t, err error) {
	for {
		if err = unix.Statfs(dir, &st); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		err = &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return st, err
}

func freeBytes(dir string) (avail, total int64, err error) {
	st, err := statfs(dir)
	if err != nil {
		return 0, 0, err
	}
	unit := int64(st.Frsize)
	if unit == 0 {
		unit = int64(st.Bsize)
	}
	return int64(st.Bavail) * unit, int64(st.Blocks) * unit, nil
}

var linuxKinds = map[uint32]struct {
	name  string
	class Class
}{
	unix.EXT4_SUPER_MAGIC:      {"ext4", ClassFull}, // ext2 and ext3 share the number
	unix.XFS_SUPER_MAGIC:       {"xfs", ClassFull},
	unix.BTRFS_SUPER_MAGIC:     {"btrfs", ClassFull},
	0x2fc12fc1:                 {"zfs", ClassFull},
	unix.F2FS_SUPER_MAGIC:      {"f2fs", ClassFull},
	0xca451a4e:                 {"bcachefs", ClassFull},
	unix.OVERLAYFS_SUPER_MAGIC: {"overlay", ClassFull}, // see overlayClass
	unix.TMPFS_MAGIC:           {"tmpfs", ClassVolatile},
	unix.RAMFS_MAGIC:           {"ramfs", ClassVolatile},
	unix.NFS_SUPER_MAGIC:       {"nfs", ClassNetwork},
	unix.SMB_SUPER_MAGIC:       {"smb", ClassNetwork},
	unix.SMB2_SUPER_MAGIC:      {"smb2", ClassNetwork},
	unix.CIFS_SUPER_MAGIC:      {"cifs", ClassNetwork},
	unix.V9FS_MAGIC:            {"9p", ClassNetwork},
	unix.FUSE_SUPER_MAGIC:      {"fuse", ClassNetwork}, // virtiofs too
	unix.CEPH_SUPER_MAGIC:      {"ceph", ClassNetwork},
	unix.AFS_SUPER_MAGIC:       {"afs", ClassNetwork},
	unix.CODA_SUPER_MAGIC:      {"coda", ClassNetwork},
	0x0bd00bd0:                 {"lustre", ClassNetwork},
	0x01161970:                 {"gfs2", ClassNetwork},
	unix.OCFS2_SUPER_MAGIC:     {"ocfs2", ClassNetwork},
	0x47504653:                 {"gpfs", ClassNetwork},
	0x786f4256:                 {"vboxsf", ClassNetwork},
	0xbacbacbc:                 {"vmhgfs", ClassNetwork},
}

func kind(dir string) (string, Class, error) {
	st, err := statfs(dir)
	if err != nil {
		return "", ClassUnknown, err
	}
	magic := uint32(st.Type) // the field is signed on some machines
	k, ok := linuxKinds[magic]
	if !ok {
		return fmt.Sprintf("0x%x", magic), ClassUnknown, nil
	}
	if k.name == "overlay" {
		return k.name, overlayClass(dir), nil
	}
	return k.name, k.class, nil
}

// overlayClass is that of the upper directory, where it can be seen from here, and volatile when
// the mount skips fsync. What the mount table does not tell counts as full.
func overlayClass(dir string) Class {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return ClassUnknown
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ClassFull
	}
	dev := fmt.Sprintf("%d:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)))
	options, ok := overlayOptions(string(table), dev)
	if !ok {
		return ClassFull
	}
	upper, volatile := readOverlayOptions(options)
	if volatile {
		return ClassVolatile
	}
	if us, err := statfs(upper); err == nil {
		if k, ok := linuxKinds[uint32(us.Type)]; ok {
			return k.class
		}
	}
	return ClassFull
}

// readOverlayOptions finds the upper directory and whether the mount skips every sync.
func readOverlayOptions(options string) (upper string, volatile bool) {
	for option := range strings.SplitSeq(options, ",") {
		if option == "volatile" || option == "fsync=volatile" {
			volatile = true
		}
		if dir, ok := strings.CutPrefix(option, "upperdir="); ok {
			upper = dir
		}
	}
	return upper, volatile
}

// overlayOptions finds the super options of the overlay with device dev ("major:minor") in a
// mountinfo table: the last field after the "-" that ends the optional ones.
func overlayOptions(table, dev string) (string, bool) {
	for line := range strings.Lines(table) {
		left, right, ok := strings.Cut(line, " - ")
		fields, super := strings.Fields(left), strings.Fields(right)
		if ok && len(fields) > 2 && fields[2] == dev && len(super) == 3 && super[0] == "overlay" {
			return super[2], true
		}
	}
	return "", false
}
