package main

import (
	"context"
	"flag"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kube-network-policies/pkg/api"
	engine "sigs.k8s.io/kube-network-policies/pkg/cmd"
	"sigs.k8s.io/kube-network-policies/pkg/dataplane"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
	"sigs.k8s.io/kube-network-policies/pkg/podinfo"
)

// runNetworkPolicies enforces NetworkPolicies on this node: the engine's own
// wiring, without its optional parts.
func runNetworkPolicies(args []string) {
	options := engine.NewOptions()
	flags := flag.NewFlagSet("netpol", flag.ExitOnError)
	options.AddFlags(flags)
	klog.InitFlags(flags)
	flags.Parse(args)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", options.Kubeconfig)
	if err != nil {
		klog.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	pods := factory.Core().V1().Pods()
	namespaces := factory.Core().V1().Namespaces()
	policies := factory.Networking().V1().NetworkPolicies()
	resolver, err := podinfo.NewInformerResolver(pods.Informer())
	if err != nil {
		klog.Fatal(err)
	}
	provider := podinfo.NewInformerProvider(pods, namespaces, nil, []podinfo.IPResolver{resolver})
	evaluator := networkpolicy.NewStandardNetworkPolicy(options.HostnameOverride, namespaces, pods, policies)
	factory.Start(ctx.Done())
	engine.Start(ctx, networkpolicy.NewPolicyEngine(provider, []api.PolicyEvaluator{evaluator}), dataplane.Config{
		FailOpen:            options.FailOpen,
		QueueID:             options.QueueID,
		NetfilterBug1766Fix: options.NetfilterBug1766Fix,
		StrictMode:          options.StrictMode,
	}, options.MetricsBindAddress)
	<-ctx.Done()
}
