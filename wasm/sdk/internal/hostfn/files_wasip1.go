package hostfn

import "unsafe"

//go:wasmimport statesman_fs_v1 open
func fsOpen(p unsafe.Pointer, n uint32, flags int32) int32

//go:wasmimport statesman_fs_v1 read
func fsRead(h int32, offset int64, p unsafe.Pointer, n uint32) int32

//go:wasmimport statesman_fs_v1 write
func fsWrite(h int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport statesman_fs_v1 sync
func fsSync(h int32) int32

//go:wasmimport statesman_fs_v1 size
func fsSize(h int32) int64

//go:wasmimport statesman_fs_v1 truncate
func fsTruncate(h int32, size int64) int32

//go:wasmimport statesman_fs_v1 close
func fsClose(h int32) int32

//go:wasmimport statesman_fs_v1 rename
func fsRename(op unsafe.Pointer, on uint32, np unsafe.Pointer, nn uint32) int32

//go:wasmimport statesman_fs_v1 remove
func fsRemove(p unsafe.Pointer, n uint32) int32

type guestFS struct{}

func (guestFS) Open(name string, flags int32) int32 {
	return fsOpen(unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), flags)
}
func (guestFS) Read(h int32, offset int64, p []byte) int32 {
	return fsRead(h, offset, unsafe.Pointer(unsafe.SliceData(p)), uint32(len(p)))
}
func (guestFS) Write(h int32, p []byte) int32 {
	return fsWrite(h, unsafe.Pointer(unsafe.SliceData(p)), uint32(len(p)))
}
func (guestFS) Sync(h int32) int32                 { return fsSync(h) }
func (guestFS) Size(h int32) int64                 { return fsSize(h) }
func (guestFS) Truncate(h int32, size int64) int32 { return fsTruncate(h, size) }
func (guestFS) Close(h int32) int32                { return fsClose(h) }
func (guestFS) Rename(oldname, newname string) int32 {
	return fsRename(unsafe.Pointer(unsafe.StringData(oldname)), uint32(len(oldname)),
		unsafe.Pointer(unsafe.StringData(newname)), uint32(len(newname)))
}
func (guestFS) Remove(name string) int32 {
	return fsRemove(unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)))
}
