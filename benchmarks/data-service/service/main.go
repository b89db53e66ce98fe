// data-service is a REST service on Cassandra with memcached in front of it, and what measures it: one program
// creates and loads the data set, serves the items, and drives the load.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const usage = `usage: data-service COMMAND [options]

commands:
  serve    serve items over HTTP
  drive    send reads and writes at a rate, and record their times
  dataset  write one part of the data set to stdout
  schema   create keyspace and table
  load     write items from stdin, or generated ones, to Cassandra
  verify   read all items from Cassandra, and print their number and digest
`

func main() {
	commands := map[string]func(context.Context, []string) error{
		"serve": serveCommand, "drive": driveCommand, "dataset": datasetCommand,
		"schema": schemaCommand, "load": loadCommand, "verify": verifyCommand,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := commands[os.Args[1]](ctx, os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "data-service %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// parse reads the options of a command, and refuses further arguments.
func parse(flags *flag.FlagSet, arguments []string) error {
	flags.Init(flags.Name(), flag.ContinueOnError)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	return nil
}

// list splits names at commas; an empty text has none.
func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func printJSON(document any) error {
	return json.NewEncoder(os.Stdout).Encode(document)
}
