// Package storetest gives tests the APIs of the clouds whose buckets are stores.
package storetest
