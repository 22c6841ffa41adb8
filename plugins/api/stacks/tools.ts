import type { RouteTool } from 'svc-gateway/plugin'
import type { z } from 'zod'
import type { stackItemSchema, stackListSchema } from './schemas.js'

const bySlug = { primary: 'slug' } as const
type StackList = z.output<typeof stackListSchema>

function shortRow ({ slug, name, description, seed, slots }: z.output<typeof stackItemSchema>) {
  return { slug, name, description, seed, slots: slots.length }
}

/** What agents may do with stacks. */
export const stackTools = {
  list: {
    name: 'stack_list',
    title: 'List stacks',
    description: 'Lists the stacks, which are sets of slots that can be put into force together, and which one is active. Call it to find one that fits the task.',
    readOnly: true,
    short: ({ stacks, ...state }: StackList) => ({ stacks: stacks.map(shortRow), count: stacks.length, ...state }),
    narrow: 'ask for one with stack_status'
  },
  status: {
    name: 'stack_status',
    title: 'Look at a stack',
    description: 'Tells what a stack consists of and what this machine lacks for it. Call it before applying one.',
    readOnly: true,
    ...bySlug
  },
  create: {
    name: 'stack_create',
    title: 'Create a stack',
    description: 'Creates a stack of slots without applying it. Call stack_snapshot instead to keep what is configured now; an operator has to approve it.',
    gated: true,
    destructive: false,
    ...bySlug
  },
  update: {
    name: 'stack_update',
    title: 'Replace a stack',
    description: 'Replaces what a stack consists of; it counts when it is applied again. An operator has to approve it.',
    gated: true,
    destructive: true,
    idempotent: true,
    ...bySlug
  },
  apply: {
    name: 'stack_apply',
    title: 'Put a stack into force',
    description: 'Makes the slots what the stack says; others are unloaded. With dry_run it tells what would happen. An operator has to approve it.',
    gated: true,
    destructive: true,
    idempotent: true,
    ...bySlug
  },
  import: {
    name: 'stack_import',
    title: 'Import a stack',
    description: 'Creates a stack from the envelope of another machine, or with dry_run tells what would happen. An operator has to approve it.',
    gated: true,
    destructive: false,
    show: ['envelope', 'slug', 'dry_run']
  },
  export: {
    name: 'stack_export',
    title: 'Export a stack',
    description: 'Gives a stack as an envelope for another machine. An operator has to approve it.',
    gated: true,
    readOnly: true,
    ...bySlug
  },
  snapshot: {
    name: 'stack_snapshot',
    title: 'Keep what is configured as a stack',
    description: 'Makes a stack of the slots as they are now. Call it before changes that the user may want to take back; an operator has to approve it.',
    gated: true,
    destructive: false
  },
  remove: {
    name: 'stack_delete',
    title: 'Delete a stack',
    description: 'Deletes a stack; slots stay as they are. An operator has to approve it.',
    gated: true,
    destructive: true,
    idempotent: true,
    ...bySlug
  }
} satisfies Record<string, RouteTool>
