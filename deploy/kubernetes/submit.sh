#!/bin/sh
# Submit query.py to Kubernetes with Spark's own client, in cluster mode. The variables have examples as defaults.
set -eu

: "${API_SERVER:=https://kubernetes.example:6443}"
: "${IMAGE:=registry.example/pyspark-kafka:0.2.0}"
: "${NAMESPACE:=spark}"
: "${SECRET:=kafka-user}"
: "${SERVERS:=kafka.example:9093}"
: "${SOURCE:=orders}"
: "${TARGET:=orders-out}"
: "${CHECKPOINT:=s3a://checkpoints/orders-out}"

exec "${SPARK_HOME:?}/bin/spark-submit" \
    --master "k8s://$API_SERVER" \
    --deploy-mode cluster \
    --name orders \
    --conf spark.kubernetes.namespace="$NAMESPACE" \
    --conf spark.kubernetes.container.image="$IMAGE" \
    --conf spark.kubernetes.authenticate.driver.serviceAccountName=spark \
    --conf spark.kubernetes.driver.secrets."$SECRET"=/mnt/kafka \
    --conf spark.kubernetes.executor.secrets."$SECRET"=/mnt/kafka \
    --conf spark.executor.instances=2 \
    --conf spark.dynamicAllocation.enabled=false \
    "$@" \
    local:///opt/app/query.py "$SERVERS" "$SOURCE" "$TARGET" "$CHECKPOINT"
