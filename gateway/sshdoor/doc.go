// Package sshdoor is the door of a gateway for SSH clients. Users log in to a task: `ssh -p 7222 task.run@gateway`.
//
//	connection ──▶ back-off, bound ──▶ handshake ──▶ signature ──▶ grant ──▶ activities/sessions/sshserver
//	                    │                               │            │ checked again every few seconds
//	                    └──────── refused ◀─────────────┴────────────┘
//
// Each well-formed key is asked to sign, whatever run the client names, and only then is looked for: who has no key that opens
// a run learns neither that there is one nor whose key opens it. All refusals look alike, and take the same time.
//
// Two kinds of keys open a task: those that the task names, by which the client is the owner of the run, in this task alone;
// and those of people (gateway/sshkeys), with their names and roles. What is done then is a matter of the streams behind the
// door, which hold the principal to its rights, and record sessions in the audit.
//
// Of this module it may import proto, activities/executor, activities/sessions/sshserver, activities/store,
// activities/store/storekey, gateway/auth, gateway/rpcerror, workflows/names and workflows/sshkey.
package sshdoor
