"""Events of OpenLineage, made of the facts of a run, with the classes of its own client. Pure.

Needs the package `openlineage-python`; nothing but `listener` imports this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    column_lineage_dataset,
    dataset_type_dataset,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
    tags_dataset,
)

from pyspark_kafka.version import REPOSITORY, __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from openlineage.client.facet_v2 import DatasetFacet, InputDatasetFacet, JobFacet, OutputDatasetFacet, RunFacet

    from pyspark_kafka._ops.lineage.values import DatasetColumn, ParentRun, QueryFlow, RunFacts, State, TopicDataset

PRODUCER = f"{REPOSITORY}/tree/v{__version__}"
# An error of Spark may quote a whole plan.
_MAX_MESSAGE = 4_000


def run_event(facts: RunFacts, state: State, time: datetime) -> RunEvent:
    """Return the event of a run.

    Args:
        facts: of the run, as far as they are known.
        state: what has happened to it.
        time: when; with a time zone.
    """
    return RunEvent(
        eventType=RunState(state),
        eventTime=time.isoformat(timespec="milliseconds"),
        run=Run(runId=facts.run.run_id, facets=_run_facets(facts)),
        job=Job(namespace=facts.run.namespace, name=facts.run.name, facets=_job_facets(facts)),
        inputs=[_input(each) for each in facts.flow.inputs],
        outputs=[_output(each, facts.flow) for each in facts.flow.outputs],
        producer=PRODUCER,
    )


def _run_facets(facts: RunFacts) -> dict[str, RunFacet]:
    facets: dict[str, RunFacet] = {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
            version=facts.spark_version,
            name="spark",
            openlineageAdapterVersion=__version__,
            producer=PRODUCER,
        )
    }
    if facts.parent is not None:
        facets["parent"] = _parent(facts.parent)
    if facts.error is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=facts.error[:_MAX_MESSAGE], programmingLanguage="PYTHON", producer=PRODUCER
        )
    return facets


def _parent(parent: ParentRun) -> parent_run.ParentRunFacet:
    own, root = parent.parent, parent.root
    return parent_run.ParentRunFacet(
        run=parent_run.Run(runId=own.run_id),
        job=parent_run.Job(namespace=own.namespace, name=own.name),
        root=parent_run.Root(
            run=parent_run.RootRun(runId=root.run_id),
            job=parent_run.RootJob(namespace=root.namespace, name=root.name),
        ),
        producer=PRODUCER,
    )


def _job_facets(facts: RunFacts) -> dict[str, JobFacet]:
    return {
        "jobType": job_type_job.JobTypeJobFacet(
            processingType=facts.processing, integration="SPARK", jobType=facts.job_type, producer=PRODUCER
        )
    }


def _input(dataset: TopicDataset) -> InputDataset:
    facets: dict[str, InputDatasetFacet] = {}
    if dataset.rows is not None:
        facets["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=dataset.rows, producer=PRODUCER
        )
    return InputDataset(
        namespace=dataset.namespace, name=dataset.topic, facets=_dataset_facets(dataset), inputFacets=facets
    )


def _output(dataset: TopicDataset, flow: QueryFlow) -> OutputDataset:
    facets: dict[str, OutputDatasetFacet] = {}
    if dataset.rows is not None:
        facets["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=dataset.rows, producer=PRODUCER
        )
    return OutputDataset(
        namespace=dataset.namespace,
        name=dataset.topic,
        facets=_dataset_facets(dataset) | _column_lineage(flow.paths, flow.inputs),
        outputFacets=facets,
    )


def _dataset_facets(dataset: TopicDataset) -> dict[str, DatasetFacet]:
    facets: dict[str, DatasetFacet] = {
        "datasetType": dataset_type_dataset.DatasetTypeDatasetFacet(datasetType="TOPIC", producer=PRODUCER)
    }
    if dataset.columns:
        fields = [_field(each, place) for place, each in enumerate(dataset.columns, start=1)]
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=fields, producer=PRODUCER)
    tags = []
    for each in dataset.subjects:
        found = {"schema.registry.subject": each.subject}
        if each.version is not None:
            found["schema.registry.version"] = str(each.version)
        tags += [
            tags_dataset.TagsDatasetFacetFields(key=key, value=value, source="SCHEMA_REGISTRY", field=each.column)
            for key, value in found.items()
        ]
    if tags:
        facets["tags"] = tags_dataset.TagsDatasetFacet(tags=tags, producer=PRODUCER)
    return facets


def _field(column: DatasetColumn, place: int) -> schema_dataset.SchemaDatasetFacetFields:
    return schema_dataset.SchemaDatasetFacetFields(
        name=column.name,
        type=column.type,
        ordinal_position=place,
        fields=[_field(each, inner) for inner, each in enumerate(column.fields, start=1)],
    )


def _column_lineage(paths: Mapping[str, str], inputs: tuple[TopicDataset, ...]) -> dict[str, DatasetFacet]:
    if not paths or not inputs:
        return {}
    copied = column_lineage_dataset.Transformation(type="DIRECT", subtype="IDENTITY", description="", masking=False)
    fields = {
        written: column_lineage_dataset.Fields(
            inputFields=[
                column_lineage_dataset.InputField(
                    namespace=each.namespace, name=each.topic, field=read, transformations=[copied]
                )
                for each in inputs
            ]
        )
        for written, read in paths.items()
    }
    return {"columnLineage": column_lineage_dataset.ColumnLineageDatasetFacet(fields=fields, producer=PRODUCER)}
