// Package notifications implements NotificationService: people store the targets of notifications, and send them test messages.
//
// Of this module it may import proto, activities/notifications, activities/secrets/vault, gateway/auth, gateway/paging,
// gateway/rpcerror, workflows/names and workflows/nearest.
package notifications
