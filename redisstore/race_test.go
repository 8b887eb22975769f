//go:build race

package redisstore_test

// backlog is how many records TestRedisAwayAtStart writes; the race detector is slow.
const backlog = 4_000
