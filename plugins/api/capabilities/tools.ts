import type { RouteTool } from 'svc-gateway/plugin'

interface Capabilities { readonly selections: unknown, readonly backends: unknown }

/** What agents may do with capabilities. */
export const capabilityTools = {
  list: {
    name: 'capability_list',
    title: 'What serves what',
    description: 'Shows which model and device serve embeddings, reranking, speech and images. Call it to see whether such a task is possible here.',
    readOnly: true,
    short: ({ selections, backends }: Capabilities) => ({ selections, backends })
  },
  set: {
    name: 'capability_set',
    title: 'Choose what serves a capability',
    description: 'Chooses the model and device for embeddings, reranking, speech or images, or switches it on or off. An operator has to approve it.',
    gated: true,
    destructive: false,
    idempotent: true,
    primary: 'slot',
    show: ['device', 'provider', 'model', 'enabled']
  }
} satisfies Record<string, RouteTool>
