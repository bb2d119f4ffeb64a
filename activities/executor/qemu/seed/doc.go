// Package seed writes what cloud-init in a virtual machine needs at its first boot: a NoCloud seed, which is a CD image of
// the files user-data and meta-data. It sets the name of the machine, the user who may log in, the keys of that user, and
// the key by which the machine proves its identity over SSH, so that the node need not trust a key at first use.
//
// It imports nothing of Switchyard. The format is that of https://docs.cloud-init.io/en/latest/reference/datasources/nocloud.html.
package seed
