import { defineRoute, whileConnected, type AnyRoute, type RouteCall } from 'svc-gateway/plugin'
import type { z } from 'zod'
import type { NamedStack } from '../../services/stack-catalog/ref.js'
import type { StackPlan } from './plan.js'
import { applyAnswerSchema, applyQuerySchema, slugParamsSchema, type applyPreviewSchema } from './schemas.js'
import type { StackServices } from './stack-api.js'
import { stackOf } from './stack-item.js'
import { outcomeText, type StackRunner } from './stack-runner.js'
import { audited } from './stack-store.js'
import { summaryOf, warningsOf } from './summary.js'
import { stackTools } from './tools.js'

/** Applying a stack, and what it would do. */
export function applyRoutes (services: StackServices, runner: StackRunner): AnyRoute[] {
  return [
    defineRoute({
      method: 'POST',
      url: '/api/stacks/:slug/apply',
      summary: 'Apply a stack, or show what that would do',
      description: 'Slots that are not in the stack are unloaded. The configuration changes as a whole or not ' +
        'at all; a change that would leave a serving slot unable to start is refused unless `force` is set. Then the slots are updated; failures are in `converged.errors`. Waits until that is done.',
      schema: { params: slugParamsSchema, querystring: applyQuerySchema, response: applyAnswerSchema },
      tool: stackTools.apply,
      handler: call => {
        const { slug } = call.params
        stackOf(services, slug)
        return call.query.dry_run ? previewOf(services, runner, slug) : applyStack(services, runner, call)
      }
    })
  ]
}

type Preview = z.output<typeof applyPreviewSchema>

async function previewOf (services: StackServices, runner: StackRunner, slug: string): Promise<Preview> {
  const { stack, plan, unloads } = await runner.preview(slug)
  return { ...planView(services, stack, plan, unloads), dry_run: true, creates: [...plan.creates], unloads: [...unloads] }
}

type Call = Pick<RouteCall<{ readonly slug: string }, { readonly force: boolean }>, 'actor' | 'params' | 'query' | 'requestId' | 'signal'>

/** An order, not a question: the client that leaves does not take it back. */
function applyStack (services: StackServices, runner: StackRunner, call: Call): ReturnType<typeof whileConnected> {
  const { slug } = call.params
  return whileConnected(call, audited(services, call, 'apply', slug, async note => {
    const { stack, plan, converged } = await runner.apply(slug, call.query.force, committed => {
      note({ after: { created: committed.creates, changed: changedNames(committed) } })
      services.events.emit({
        type: 'stack.applied', source: `stack:${slug}`, message: `stack ${slug} is applied`,
        data: { slug, created: committed.creates, changed: changedNames(committed) }
      })
    })
    note({ message: outcomeText(converged) })
    const view = planView(services, stack, plan, converged.unloaded)
    return { ...view, dry_run: false as const, created: [...plan.creates], converged }
  }))
}

function changedNames ({ changes }: StackPlan): readonly string[] {
  return changes.filter(({ changed }) => changed).map(({ slot }) => slot)
}

function planView (services: StackServices, stack: NamedStack, plan: StackPlan, unloads: readonly string[]) {
  return {
    stack: stack.slug,
    summary: summaryOf(plan, unloads),
    changes: [...plan.changes],
    profiles: [...plan.profiles],
    capabilities: [...plan.capabilities],
    warnings: warningsOf(services, stack, plan),
    troubles: [...plan.troubles]
  }
}
