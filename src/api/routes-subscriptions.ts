import { HooktideError } from '../core/error.ts'
import type { WrittenSubscription } from '../operations/contract.ts'
import { choice, flag, ref, request, text, whole } from './json-schema.ts'
import type { ApiAnswer, ApiCall, ApiRoute } from './route.ts'

const tag = 'Subscriptions'
const at = '/v1/subscriptions/{id}'
const reason = request({ reason: text(1000, 'Why, for whoever looks later.') })

export const subscriptionRoutes: readonly ApiRoute[] = [
  {
    method: 'GET',
    path: '/v1/subscriptions',
    scope: 'read',
    tag,
    summary: 'List subscriptions',
    query: { tenant: text(100), status: choice(['active', 'paused', 'disabled']) },
    status: 200,
    answer: 'SubscriptionList',
    handle: async ({ ops, query }) => ({ body: await ops.subscriptions.list(query) }),
  },
  {
    method: 'POST',
    path: '/v1/subscriptions',
    scope: 'write',
    tag,
    summary: 'Add a subscription',
    description:
      'Answered when the next read will find it. `kafka:new` as a secret has one made; it is told once, and needs the scope `secrets`.',
    query: { verify: flag('Paused until its endpoint has answered a signed challenge.') },
    body: ref('SubscriptionInput'),
    status: 201,
    answer: 'WrittenSubscription',
    async handle(call) {
      const { verify } = call.query as { verify?: boolean }
      mayMakeSecrets(call, call.body)
      const written = await call.ops.subscriptions.add(call.body, verify === undefined ? {} : { verify })
      const location = `/v1/subscriptions/${encodeURIComponent(written.subscription.id)}`
      return { ...answerOf(written), status: 201, headers: { etag: etag(written.version), location } }
    },
  },
  {
    method: 'POST',
    path: '/v1/subscriptions/apply',
    scope: 'write',
    tag,
    summary: 'Make the subscriptions as a list says',
    body: ref('ApplyInput'),
    maxBodyBytes: 16 * 1024 * 1024,
    status: 200,
    answer: 'AppliedPlan',
    async handle({ ops, body }) {
      const input = body as {
        subscriptions: unknown[]
        prune?: boolean
        tenant?: string
        dryRun?: boolean
        label?: string
      }
      const prune = input.prune === true ? { tenant: input.tenant ?? null } : null
      const options = { prune, dryRun: input.dryRun === true, label: input.label ?? 'the list' }
      return { body: await ops.subscriptions.apply(input.subscriptions, options) }
    },
  },
  {
    method: 'GET',
    path: at,
    scope: 'read',
    tag,
    summary: 'Show a subscription',
    description: 'Values of headers and URL queries are hidden. The ETag is what If-Match wants.',
    status: 200,
    answer: 'Subscription',
    async handle({ ops, params }) {
      const { subscription, version } = await ops.subscriptions.show(idOf(params))
      return { body: subscription, headers: { etag: etag(version) } }
    },
  },
  {
    method: 'PUT',
    path: at,
    scope: 'write',
    tag,
    summary: 'Replace a subscription',
    description: 'Fields left out are unset, but for status and secrets, which stay.',
    body: ref('SubscriptionReplacement'),
    ifMatch: true,
    status: 200,
    answer: 'WrittenSubscription',
    async handle(call) {
      mayMakeSecrets(call, call.body)
      return answerOf(await call.ops.subscriptions.replace(idOf(call.params), call.body, ifMatch(call)))
    },
  },
  {
    method: 'PATCH',
    path: at,
    scope: 'write',
    tag,
    summary: 'Change a subscription',
    description: 'Fields given replace, null unsets, `retry` is merged field by field; the rest stays.',
    body: ref('SubscriptionChange'),
    ifMatch: true,
    status: 200,
    answer: 'WrittenSubscription',
    async handle(call) {
      mayMakeSecrets(call, call.body)
      return answerOf(await call.ops.subscriptions.change(idOf(call.params), call.body, ifMatch(call)))
    },
  },
  {
    method: 'DELETE',
    path: at,
    scope: 'write',
    tag,
    summary: 'Remove a subscription',
    description: 'Its waiting deliveries are cancelled.',
    ifMatch: true,
    status: 204,
    answer: null,
    async handle(call) {
      await call.ops.subscriptions.remove([idOf(call.params)], ifMatch(call))
      return { status: 204 }
    },
  },
  status('pause', 'Attempt nothing until it is resumed; what arrives meanwhile waits', 'paused'),
  status('resume', 'Go on with a paused or disabled subscription', 'active'),
  {
    method: 'POST',
    path: `${at}/rotate-secret`,
    scope: 'secrets',
    tag,
    summary: 'Sign with a new secret, and for a while with the old one beside it',
    body: request({
      ref: text(1024, 'kafka:new (the default), env:NAME, file:PATH or kafka:ID.'),
      overlapMs: whole(0, 31_536_000_000, 'How long the old ones go on signing; a day by default.'),
    }),
    bodyOptional: true,
    status: 200,
    answer: 'WrittenSubscription',
    async handle({ ops, params, body }) {
      const { ref = 'kafka:new', overlapMs = 86_400_000 } = (body ?? {}) as { ref?: string; overlapMs?: number }
      return answerOf(await ops.subscriptions.rotateSecret(idOf(params), { ref, overlapMs }))
    },
  },
  {
    method: 'POST',
    path: `${at}/test`,
    scope: 'write',
    tag,
    summary: 'Send a test event to this subscription alone',
    status: 202,
    answer: 'TestSent',
    handle: async ({ ops, params }) => ({ status: 202, body: await ops.subscriptions.test(idOf(params)) }),
  },
  {
    method: 'POST',
    path: `${at}/verify`,
    scope: 'write',
    tag,
    summary: 'Send a signed challenge to its endpoint',
    status: 200,
    answer: 'Verified',
    handle: async ({ ops, params }) => ({ body: await ops.subscriptions.verify([idOf(params)]) }),
  },
  {
    method: 'GET',
    path: `${at}/health`,
    scope: 'read',
    tag,
    summary: 'How its deliveries fare',
    description: '`health` is null where there is no delivery of it, or no delivery state.',
    status: 200,
    answer: 'SubscriptionHealth',
    handle: async ({ ops, params }) => ({ body: await ops.subscriptions.health(idOf(params)) }),
  },
]

function status(action: 'pause' | 'resume', summary: string, to: 'paused' | 'active'): ApiRoute {
  return {
    method: 'POST',
    path: `${at}/${action}`,
    scope: 'write',
    tag,
    summary,
    body: reason,
    bodyOptional: true,
    status: 200,
    answer: 'WrittenSubscription',
    async handle({ ops, params, body }) {
      const { reason } = (body ?? {}) as { reason?: string }
      return answerOf(await ops.subscriptions.setStatus(idOf(params), to, reason))
    },
  }
}

function idOf({ id }: ApiCall['params']): string {
  return id as string
}

function answerOf({ version, ...body }: WrittenSubscription): ApiAnswer {
  return { body, headers: { etag: etag(version) } }
}

function etag(version: string): string {
  return `"${version}"`
}

/** `*`, or one strong validator (RFC 9110, 13.1.1). That it is there was checked. */
function ifMatch(call: ApiCall): string {
  const given = call.header('if-match') ?? ''
  if (given.trim() === '*') return '*'
  const [, version] = /^\s*"([^"]*)"\s*$/.exec(given) ?? []
  if (version !== undefined) return version
  throw new HooktideError('usage', 'If-Match is no ETag', {
    problems: [
      {
        field: 'If-Match',
        value: given.slice(0, 60),
        message: 'is malformed',
        remedy: 'send the ETag as it came, in its quotes, or *',
      },
    ],
  })
}

function mayMakeSecrets(call: ApiCall, body: unknown): void {
  const { secrets } = body as { secrets?: unknown }
  const asked = Array.isArray(secrets) && secrets.some((one: { ref?: unknown }) => one.ref === 'kafka:new')
  if (!asked || call.has('secrets')) return
  throw new HooktideError('forbidden', 'to have a secret made, the token needs the scope secrets', {
    remedy: 'Use a token with that scope, or a reference to a secret that is there.',
  })
}
