// The part of Annif's REST API that catalogues use to get suggestions: the same addresses, fields and errors, so that
// they can be pointed here. A project is a model; a label's id is its URI.
import { type Static, Type } from 'typebox';
import type { Crew } from './crew.ts';
import { renderError } from './problem.ts';
import { type App, findCrew, type Serving } from './routes.ts';
import type { Suggestions } from './schemas.ts';

const batchLimit = 32;

const Project = Type.Object({
  project_id: Type.String(),
  name: Type.String(),
  language: Type.String(),
  backend: Type.Object({ backend_id: Type.String() }),
  is_trained: Type.Boolean(),
  modification_time: Type.Union([Type.String({ format: 'date-time' }), Type.Null()]),
});
const Results = Type.Object({
  results: Type.Array(
    Type.Object({
      uri: Type.String(),
      label: Type.String(),
      notation: Type.Union([Type.String(), Type.Null()]),
      score: Type.Number(),
    }),
  ),
});
const BatchResults = Type.Array(
  Type.Object({ ...Results.properties, document_id: Type.Union([Type.String(), Type.Null()]) }),
);
const ProblemDetails = Type.Object({ title: Type.String(), status: Type.Integer(), detail: Type.String() });

const ProjectParams = Type.Object({ project_id: Type.String() });
const asked = {
  limit: Type.Optional(Type.Integer({ minimum: 0, default: 10 })),
  threshold: Type.Optional(Type.Number({ minimum: 0, maximum: 1, default: 0 })),
  language: Type.Optional(
    Type.String({ description: 'Taken, but labels have the names they were trained with.' }),
  ),
};
const Asked = Type.Object(asked);
type Asked = Static<typeof Asked>;
const Documents = Type.Object({
  documents: Type.Array(
    Type.Object({
      text: Type.String(),
      document_id: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    }),
    { maxItems: batchLimit },
  ),
});

export function registerAnnif(app: App, serving: Serving, version: string): void {
  const answers = (schema: object) => ({ 200: schema, '4xx': ProblemDetails, '5xx': ProblemDetails });
  const tags = ['annif'];

  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(String(body)))),
  );
  app.setErrorHandler((error, request, reply) => {
    const { status, body, ours } = renderError(error);
    if (ours) request.log.error(error);
    if (status === 503) reply.header('retry-after', '1');
    const problem = { title: body.error.code, status, detail: body.error.message };
    reply.code(status).type('application/problem+json').send(problem);
  });

  app.get(
    '/',
    {
      schema: {
        tags,
        summary: 'Name and version of the service',
        response: answers(Type.Object({ title: Type.String(), version: Type.String() })),
      },
    },
    async () => ({ title: 'umbel', version }),
  );

  app.get(
    '/projects',
    {
      schema: {
        tags,
        summary: 'List the projects',
        response: answers(Type.Object({ projects: Type.Array(Project) })),
      },
    },
    async () => ({ projects: Array.from(serving.crews.values(), describe) }),
  );

  app.get(
    '/projects/:project_id',
    { schema: { tags, summary: 'One project', params: ProjectParams, response: answers(Project) } },
    async ({ params }) => describe(findCrew(serving, params.project_id)),
  );

  app.post(
    '/projects/:project_id/suggest',
    {
      schema: {
        tags,
        summary: 'Suggest subjects for a text',
        consumes: ['application/x-www-form-urlencoded', 'application/json'],
        params: ProjectParams,
        body: Type.Object({ text: Type.String(), ...asked }),
        response: answers(Results),
      },
      // A form is all text, so that its numbers are read as those of a query are.
      validatorCompiler: (part) =>
        app.validatorCompiler?.({ ...part, httpPart: 'querystring' }) ?? (() => true),
    },
    async ({ params, body }) => {
      const [results] = await suggest(findCrew(serving, params.project_id), [body.text], body, serving);
      return results;
    },
  );

  app.post(
    '/projects/:project_id/suggest-batch',
    {
      schema: {
        tags,
        summary: `Suggest subjects for up to ${batchLimit} documents`,
        params: ProjectParams,
        querystring: Asked,
        body: Documents,
        response: answers(BatchResults),
      },
    },
    async ({ params, query, body: { documents } }) => {
      const texts = documents.map(({ text }) => text);
      const results = await suggest(findCrew(serving, params.project_id), texts, query, serving);
      return results.map((result, i) => ({ ...result, document_id: documents[i].document_id ?? null }));
    },
  );
}

function describe({ summary: { name, learner, loadedAt } }: Crew): Static<typeof Project> {
  return {
    project_id: name,
    name,
    // A model does not know the language of its texts.
    language: 'und',
    backend: { backend_id: learner },
    is_trained: true,
    modification_time: loadedAt,
  };
}

async function suggest(
  crew: Crew,
  texts: string[],
  { limit = 10, threshold = 0 }: Asked,
  { limits }: Serving,
): Promise<Static<typeof Results>[]> {
  if (limit === 0) return texts.map(() => ({ results: [] }));
  const inputs = texts.map((text) => ({ text }));
  const answers = await crew.suggest(inputs, { top: Math.min(limit, limits.top), threshold });
  return answers.map((json) => {
    const { labels } = JSON.parse(json) as Suggestions;
    return {
      results: labels.map(({ label, name, score }) => ({ uri: label, label: name, notation: null, score })),
    };
  });
}
