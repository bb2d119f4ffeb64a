// Package browsertest drives a real browser in tests: Debian's chromium in headless mode, through the Chrome DevTools Protocol.
//
// [NewProfile] returns a profile with its own cookies, storage and connections, like one user at one computer, and
// [Profile.Tab] opens a tab in it. One browser serves all profiles of a test process; it starts with the first profile and
// ends with the last one, or after the last test if TestMain calls [Run]. A [Tab] records the requests and problems of its page. [Tab.Check] fails a test if its page wrote
// an error to the console, threw an exception, violated its Content-Security-Policy, or sent a request to another origin.
// [Tab.CheckAccessibility] fails a test if axe-core has findings for its page.
//
// The methods of a tab fail the test that opened the profile, and must be called on the goroutine of that test.
//
// Only tests import it. Of this module it may import activities/filelock and dev/testneeds.
package browsertest
