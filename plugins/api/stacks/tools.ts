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
    description: 'Lists the stacks, which are sets of slots that can be applied together, and which one is active. Call it to find one that fits the task.',
    readOnly: true,
    short: ({ stacks, ...state }: StackList) => ({ stacks: stacks.map(shortRow), count: stacks.length, ...state }),
    narrow: 'ask for one with stack_status'
  },
  status: {
    name: 'stack_status',
    title: 'Look at a stack',
    description: 'Shows the contents of a stack and what this machine lacks for it. Call it before applying one.',
    readOnly: true,
    ...bySlug
  },
  create: {
    name: 'stack_create',
    title: 'Create a stack',
    description: 'Creates a stack of slots without applying it. Call stack_snapshot instead to save the current configuration; an operator has to approve it.',
    gated: true,
    destructive: false,
    ...bySlug
  },
  update: {
    name: 'stack_update',
    title: 'Replace a stack',
    description: 'Replaces the contents of a stack; takes effect when it is applied again. An operator has to approve it.',
    gated: true,
    destructive: true,
    idempotent: true,
    ...bySlug
  },
  apply: {
    name: 'stack_apply',
    title: 'Apply a stack',
    description: 'Configures the slots as in the stack; others are unloaded. With dry_run it shows what would happen. An operator has to approve it.',
    gated: true,
    destructive: true,
    idempotent: true,
    ...bySlug
  },
  import: {
    name: 'stack_import',
    title: 'Import a stack',
    description: 'Creates a stack from the envelope of another machine, or with dry_run shows what would happen. An operator has to approve it.',
    gated: true,
    destructive: false,
    show: ['envelope', 'slug', 'dry_run']
  },
  export: {
    name: 'stack_export',
    title: 'Export a stack',
    description: 'Exports a stack as an envelope for another machine. An operator has to approve it.',
    gated: true,
    readOnly: true,
    ...bySlug
  },
  snapshot: {
    name: 'stack_snapshot',
    title: 'Save the configuration as a stack',
    description: 'Saves the current slots as a stack. Call it before changes that the user may want to revert; an operator has to approve it.',
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
