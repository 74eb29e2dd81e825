// Package signer signs with keys of its own, and not with Vault's.
package signer
