// Package notifications sends messages about events of runs to targets: it keeps the targets in the store, and speaks their
// protocols. The secrets of targets are in the vault.
//
//	target ── store:NAME ──> vault
//	   │
//	   └── Sender ── connects only to allowed addresses, follows no redirect, uses no proxy ──> receiver
//
// One call of [Sender.Send] is one try. An error for which [IsPermanent] is true makes further tries pointless. No text that a try
// returns has a secret of the target, although the receiver may repeat it.
//
// The package may import proto, activities/hostlist, activities/secrets/mask, activities/secrets/vault, activities/store, drawing/words,
// workflows/notification and workflows/secretref; it knows no Temporal.
package notifications
