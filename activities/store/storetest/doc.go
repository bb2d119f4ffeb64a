// Package storetest opens stores for tests, and provides fakes of the cloud APIs whose buckets can be stores.
package storetest
