"""Part of the rim: what a run measured, written for other programs: CSV, Parquet, TensorBoard, MLflow, Weights and
Biases. Nothing is sent anywhere: each gets a folder of its own."""
