//go:build !linux

package fsstore

func tortureStrace(*rig) string { return "strace is Linux's" }

func torturePower(*rig) string { return "loop devices and the shutdown ioctl are Linux's" }
