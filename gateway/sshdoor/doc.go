// Package sshdoor is the SSH server of a gateway. Users log in to a task: `ssh -p 7222 task.run@gateway`.
//
//	connection ──▶ bound ──▶ handshake ──▶ signature ──▶ back-off ──▶ grant ──▶ activities/sessions/sshserver
//	                 │                         │             │          │ checked again every few seconds
//	                 └──────── refused ◀───────┴─────────────┴──────────┘
//
// The server asks for a signature of each well-formed key, whatever run the client names, and only then looks the key up. A
// client without a key that opens a run therefore cannot learn that the run exists or whose key opens it. All refusals look
// alike and take the same time. A key that is refused often has to wait, and its client learns how long; other keys from the same
// address do not wait.
//
// Two kinds of keys open a task. A key that the task names logs the client in as the owner of the run, for this task only. A
// key of a person (gateway/sshkeys) logs in with the person's name and role. From then on the streams of the session check
// the rights of the principal and record the session in the audit log.
//
// Of this module it may import proto, activities/executor, activities/sessions/sshserver, activities/store,
// activities/store/storekey, gateway/auth, gateway/rpcerror, workflows/names and workflows/sshkey.
package sshdoor
