// Package embedded runs a whole Temporal server, and on request its Web UI, inside this process.
//
// It lets `switchyard run` and `switchyard dev` work on a machine with nothing else installed: the store is SQLite, in
// memory or in one file, and the server is tuned for one host (see tuning.go for each setting and its reason).
//
// Life of a Server:
//
//	Start: lock the file ── create, check or upgrade the database ── take the ports ── start the services ── namespace answers
//	Stop:  Web UI ── services, in reverse order ── checkpoint the file (or empty the memory) ── unlock
//
// A file database is created under another name and renamed into place, so a file that exists is complete. Its header
// holds a mark: the minor version of Temporal that last used the file, and the schema version. The mark is checked before anything
// opens the file. A file of the previous minor version is upgraded in the same way: a copy gets the new schema and mark, and then the
// name. The file survives any crash of the process,
// and only one process at a time can use it.
//
// The package may import the Temporal server, the UI server, the Temporal API,
// activities/filelock and activities/httpguard; nothing else of Switchyard.
package embedded
