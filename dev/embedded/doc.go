// Package embedded runs a whole Temporal server, and its Web UI when one is asked for, inside this process.
//
// It is what lets `switchyard run` and `switchyard dev` work on a machine with nothing else installed: the store is
// SQLite, in memory or in one file, and the server is tuned for one host (see tuning.go for each setting and its reason).
//
// Life of a Server:
//
//	Start: lock the file ── make or check the database ── take the ports ── start the services ── namespace answers
//	Stop:  Web UI ── services, in reverse order ── checkpoint the file (or empty the memory) ── unlock
//
// A file database is made aside and renamed into place, so a file that exists is complete; it carries the schema's
// version in its header, which is checked before anything opens it. It can be used again after any kind of death of the
// process, and by one process at a time.
//
// The package may import the Temporal server, the UI server, the Temporal API,
// activities/filelock and activities/httpguard; nothing else of Switchyard.
package embedded
