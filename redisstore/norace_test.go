//go:build !race

package redisstore_test

// backlog is how many records TestRedisAwayAtStart writes.
const backlog = 20_000
