import { defineRoute, type AnyRoute, type RouteCall } from 'svc-gateway/plugin'
import { stackCatalog, stackSchema, type Stack } from '../../services/stack-catalog/ref.js'
import {
  createBodySchema, ownSlugParamsSchema, slugParamsSchema, snapshotAnswerSchema, snapshotBodySchema, stackItemSchema,
  stackListSchema
} from './schemas.js'
import { selfContained } from './self-contained.js'
import { snapshotOf } from './snapshot.js'
import type { StackServices } from './stack-api.js'
import { devicesHere, itemOf, presentState, stackItem, stackOf } from './stack-item.js'
import { addStack, audited, bodyOf, replaceStack, requireFlags, requireSlug, tell } from './stack-store.js'
import { stackTools } from './tools.js'

type Caller = Pick<RouteCall, 'actor' | 'requestId'>

/** Stacks as a catalogue. Seeds can be read, applied and exported, not changed. */
export function catalogRoutes (services: StackServices): AnyRoute[] {
  const { config } = services
  const create = async (call: Caller, action: string, slug: string, stack: Stack): Promise<void> => {
    await audited(services, call, action, slug, async note => {
      await config.change(draft => addStack(services, draft, slug, selfContained(stack, services)))
      note({ after: bodyOf(stackOf(services, slug)) })
    })
    tell(services, 'created', slug)
  }
  return [
    defineRoute({
      method: 'GET',
      url: '/api/stacks',
      summary: 'List stacks: built-in ones first',
      schema: { response: stackListSchema },
      tool: stackTools.list,
      handler: async () => {
        const state = await presentState(services)
        const devices = devicesHere(services)
        return { stacks: [...stackCatalog.of(config.snapshot).values()].map(stack => stackItem(stack, state, devices)), ...state }
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/stacks',
      summary: 'Create a stack, from scratch or from a snapshot',
      description: 'Missing copies of its profiles and descriptions of its models are added.',
      schema: { body: createBodySchema, response: stackItemSchema },
      example: { slug: 'two-slots', stack: { name: 'Two slots', slots: [{ slot: 'agent' }, { slot: 'embed', type: 'embedding' }] } },
      status: 201,
      tool: stackTools.create,
      handler: async call => {
        const { slug, stack } = call.body
        requireSlug(slug)
        requireFlags(stack)
        await create(call, 'create', slug, stack)
        return await itemOf(services, slug)
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/stacks/snapshot',
      summary: 'A stack of the current configuration',
      schema: { body: snapshotBodySchema, response: snapshotAnswerSchema },
      example: { name: 'As it is' },
      tool: stackTools.snapshot,
      handler: async call => {
        const { slug, ...about } = call.body
        if (slug !== undefined) requireSlug(slug)
        const stack = selfContained(snapshotOf(services, about), services)
        if (slug === undefined) return { created: false as const, stack }
        await create(call, 'snapshot', slug, stack)
        return { created: true as const, stack: await itemOf(services, slug) }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/stacks/:slug',
      summary: 'One stack',
      schema: { params: slugParamsSchema, response: stackItemSchema },
      tool: stackTools.status,
      handler: ({ params }) => itemOf(services, params.slug)
    }),
    defineRoute({
      method: 'PUT',
      url: '/api/stacks/:slug',
      summary: 'Replace a stack',
      description: 'The active one counts as modified until it is applied again.',
      schema: { params: ownSlugParamsSchema, body: stackSchema, response: stackItemSchema },
      example: { name: 'Two slots', slots: [{ slot: 'agent' }] },
      tool: stackTools.update,
      handler: async call => {
        const { slug } = call.params
        const before = stackOf(services, slug)
        requireFlags(call.body)
        await audited(services, call, 'edit', slug, async note => {
          note({ before: bodyOf(before) })
          await config.change(draft => replaceStack(services, draft, slug, selfContained(call.body, services)))
          note({ after: bodyOf(stackOf(services, slug)) })
        })
        tell(services, 'updated', slug)
        return await itemOf(services, slug)
      }
    }),
    defineRoute({
      method: 'DELETE',
      url: '/api/stacks/:slug',
      summary: 'Delete a stack; slots stay as they are',
      schema: { params: ownSlugParamsSchema },
      tool: stackTools.remove,
      handler: async call => {
        const { slug } = call.params
        const before = stackOf(services, slug)
        await audited(services, call, 'delete', slug, async note => {
          note({ before: bodyOf(before) })
          await config.change(draft => replaceStack(services, draft, slug, null))
        })
        tell(services, 'deleted', slug)
      }
    })
  ]
}
