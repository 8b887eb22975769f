package peer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the pure Go driver
)

const sqliteSchema = `
CREATE TABLE IF NOT EXISTS r(pos INTEGER PRIMARY KEY, addr TEXT NOT NULL, rev INTEGER NOT NULL, p BLOB NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS r_addr ON r(addr, rev);`

// sqliteInsert checks the head and inserts in one statement.
const sqliteInsert = `INSERT INTO r(addr, rev, p)
SELECT ?1, ?2 + 1, ?3 WHERE (SELECT coalesce(max(rev), 0) FROM r WHERE addr = ?1) = ?2`

// sqliteStore is a WAL database with synchronous=FULL (a sync for each transaction), 32 MB of cache,
// checkpoints every 4,000 pages, prepared statements, one connection for the writer and one for
// reading, the latter memory-mapped. ApplyGroup is one transaction for the group; SQLite has one
// writer, so that is its only way to share a sync.
type sqliteStore struct {
	db             *sql.DB
	writer, reader *sql.Conn

	mu                    sync.Mutex // guards the writer
	insert, begin, commit *sql.Stmt
	rollback              *sql.Stmt
	head, at, feed        *sql.Stmt
}

func openSQLite(dir string, _ Options) (Store, error) {
	name := "file:" + filepath.Join(dir, "db") + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)"
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	s := &sqliteStore{db: db}
	if err := s.prepare(context.Background()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *sqliteStore) prepare(ctx context.Context) (err error) {
	for _, c := range []**sql.Conn{&s.writer, &s.reader} {
		if *c, err = s.db.Conn(ctx); err != nil {
			return err
		}
		if _, err = (*c).ExecContext(ctx, "PRAGMA wal_autocheckpoint=4000; PRAGMA cache_size=-32000"); err != nil {
			return err
		}
	}
	if _, err = s.writer.ExecContext(ctx, sqliteSchema); err != nil {
		return err
	}
	if _, err = s.reader.ExecContext(ctx, "PRAGMA mmap_size=1073741824"); err != nil {
		return err
	}
	var mode string
	var level int
	if err = s.writer.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if err = s.writer.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&level); err != nil {
		return err
	}
	if mode != "wal" || level != 2 {
		return fmt.Errorf("sqlite runs with journal_mode %s, synchronous %d: want wal, 2", mode, level)
	}
	for _, p := range []struct {
		to    **sql.Stmt
		conn  *sql.Conn
		query string
	}{
		{&s.insert, s.writer, sqliteInsert},
		{&s.begin, s.writer, "BEGIN IMMEDIATE"},
		{&s.commit, s.writer, "COMMIT"},
		{&s.rollback, s.writer, "ROLLBACK"},
		{&s.head, s.reader, "SELECT rev, p FROM r WHERE addr = ? ORDER BY rev DESC LIMIT 1"},
		{&s.at, s.reader, "SELECT p FROM r WHERE addr = ? AND rev = ?"},
		{&s.feed, s.reader, "SELECT pos, rev, addr, p FROM r WHERE pos > ? ORDER BY pos LIMIT ?"},
	} {
		if *p.to, err = p.conn.PrepareContext(ctx, p.query); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqliteStore) put(r *Request) error {
	res, err := s.insert.Exec(r.Addr.Key, int64(r.Expect), r.Payload)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return errors.Join(ErrConflict, err)
	}
	pos, err := res.LastInsertId()
	r.Rev, r.Pos = r.Expect+1, uint64(pos)
	return err
}

func (s *sqliteStore) Append(r *Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(r)
}

func (s *sqliteStore) ApplyGroup(rs []*Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.begin.Exec(); err != nil {
		return err
	}
	for _, r := range rs {
		if r.Err = s.put(r); r.Err != nil && !errors.Is(r.Err, ErrConflict) {
			_, err := s.rollback.Exec()
			return errors.Join(r.Err, err)
		}
	}
	_, err := s.commit.Exec()
	return err
}

func (s *sqliteStore) Head(a Address) (rev uint64, payload []byte, err error) {
	err = s.head.QueryRow(a.Key).Scan(&rev, &payload)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	return rev, payload, err
}

func (s *sqliteStore) At(a Address, rev uint64) (payload []byte, err error) {
	err = s.at.QueryRow(a.Key, int64(rev)).Scan(&payload)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	return payload, err
}

func (s *sqliteStore) Feed(after uint64, limit int, fn func(Entry) error) (uint64, error) {
	if limit == 0 {
		limit = -1 // SQL for no limit
	}
	rows, err := s.feed.Query(int64(after), limit)
	if err != nil {
		return after, err
	}
	defer rows.Close()
	var e Entry
	var addr, payload sql.RawBytes // no copy
	for rows.Next() {
		if err := rows.Scan(&e.Pos, &e.Rev, &addr, &payload); err != nil {
			return after, err
		}
		e.Addr, e.Payload = addr, payload
		if err := fn(e); err != nil {
			return after, err
		}
		after = e.Pos
	}
	return after, rows.Err()
}

func (s *sqliteStore) Close() error {
	var err error
	for _, st := range []*sql.Stmt{s.insert, s.begin, s.commit, s.rollback, s.head, s.at, s.feed} {
		if st != nil {
			err = errors.Join(err, st.Close())
		}
	}
	for _, c := range []*sql.Conn{s.writer, s.reader} {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	return errors.Join(err, s.db.Close())
}
