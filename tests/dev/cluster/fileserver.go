package main

import (
	"flag"
	"log"
	"net/http"
	"os"
)

// runFileServer serves a folder over HTTPS: where a test lets a load fetch its file.
func runFileServer(args []string) {
	flags := flag.NewFlagSet("fileserver", flag.ExitOnError)
	address := flags.String("address", ":8443", "where to listen")
	folder := flags.String("folder", "/files", "what to serve")
	tls := flags.String("tls", "/tls", "a folder with tls.crt and tls.key")
	flags.Parse(args)
	for _, name := range []string{*folder, *tls} {
		if _, err := os.Stat(name); err != nil {
			log.Fatal(err)
		}
	}
	server := &http.Server{Addr: *address, Handler: http.FileServer(http.Dir(*folder))}
	log.Fatal(server.ListenAndServeTLS(*tls+"/tls.crt", *tls+"/tls.key"))
}
