// Package page tests the gateway's page in a real browser, against a real `switchyard dev` with real runs: what each view
// shows, that it follows changes, that people can use it by keyboard, and that text from users is escaped. It contains only
// tests.
package page
